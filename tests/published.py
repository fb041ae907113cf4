"""Figures from the literature, with where they stand."""

# IL of MDAV on z-scored data, k -> value: Mortazavi, Jalili & Gohargazi 2013, Table 3
# (the last digits of three cells there come from other rounding: 22.4613, .6714 and 19.5458).
MDAV = {
    "tarragona": {3: 16.9326, 4: 19.5460, 5: 22.4619, 10: 33.1929},
    "census": {3: 5.6922, 4: 7.4947, 5: 9.0884, 10: 14.1559},
    "eia": {3: 0.4829, 4: 0.6713, 5: 1.6667, 10: 3.8397},
}
