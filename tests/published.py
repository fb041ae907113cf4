"""Figures from the literature, with where they stand."""

# IL of MDAV on z-scored data, k -> value: Mortazavi, Jalili & Gohargazi 2013, Table 3.
MDAV = {
    "tarragona": {3: 16.9326, 4: 19.5458, 5: 22.4613, 10: 33.1929},
    "census": {3: 5.6922, 4: 7.4947, 5: 9.0884, 10: 14.1559},
    "eia": {3: 0.4829, 4: 0.6714, 5: 1.6667, 10: 3.8397},
}
# The same to three decimals, as checked by others on the very files of the reference data.
MDAV_CHECKED = {
    "tarragona": {3: 16.933, 5: 22.462, 10: 33.193},
    "census": {3: 5.692, 5: 9.088, 10: 14.156},
    "eia": {3: 0.483, 5: 1.667, 10: 3.840},
}

# IL of mu-Approx: Domingo-Ferrer, Sebé & Solanas 2008, Table 5.
MU_APPROX = {
    "tarragona": {3: 17.10, 4: 20.51, 5: 26.04, 10: 38.80},
    "census": {3: 6.25, 4: 8.47, 5: 10.78, 10: 17.01},
    "eia": {3: 0.43, 4: 0.59, 5: 0.83, 10: 2.26},
}

# Number of partitions into groups of k..2k−1: Laszlo & Mukherjee 2005, Table 11.
COUNTS = {
    (10, 3): "2226",
    (10, 4): "336",
    (10, 5): "126",
    (10, 10): "1",
    (15, 3): "10461451",
    (15, 4): "981981",
    (15, 5): "137566",
    (15, 10): "1",
    (20, 3): "182285304201",
    (20, 4): "13519012221",
    (20, 5): "790940436",
    (20, 10): "92378",
    (50, 3): "1.425e43",
    (50, 4): "4.529e41",
    (50, 5): "3.429e39",
    (50, 10): "4.245e29",
    (100, 3): "7.697e108",
    (100, 4): "4.425e107",
    (100, 5): "2.900e104",
    (100, 10): "2.066e87",
    (200, 3): "1.163e263",
    (200, 4): "8.639e263",
    (200, 5): "3.621e259",
    (200, 10): "1.094e230",
}
