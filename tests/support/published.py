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

# IL of D and C: Laszlo & Mukherjee 2005, Table 5.
DIAMETER = {
    "tarragona": {3: 15.60, 4: 19.27, 5: 22.67, 10: 36.99},
    "census": {3: 5.42, 4: 7.22, 5: 8.81, 10: 14.55},
}
CENTROID = {
    "tarragona": {3: 20.74, 4: 27.80, 5: 32.47, 10: 44.90},
    "census": {3: 5.35, 4: 7.17, 5: 8.69, 10: 14.34},
}
# What the pseudocode of that paper gives for C on Tarragona, as checked by others.
CENTROID_CHECKED = {3: 15.62, 5: 22.61, 10: 37.10}

# IL of M, M-d and M-c: Laszlo & Mukherjee 2005, Table 5.
MST = {
    "tarragona": {3: 17.14, 4: 20.92, 5: 24.57, 10: 38.83},
    "census": {3: 6.51, 4: 8.78, 5: 10.70, 10: 17.58},
}
MST_D = {
    "tarragona": {3: 16.63, 4: 19.66, 5: 24.50, 10: 38.58},
    "census": {3: 6.11, 4: 8.24, 5: 10.30, 10: 17.17},
}
MST_C = {
    "tarragona": {3: 16.69, 4: 19.67, 5: 24.52, 10: 38.65},
    "census": {3: 6.12, 4: 8.24, 5: 10.33, 10: 17.16},
}
# Groups of 2k or more records left by M: share in percent and average size, Table 6 there.
MST_OVERSIZED = {
    "tarragona": {3: (10.23, 6.27), 4: (8.75, 8.57), 5: (8.13, 11.10), 10: (9.84, 21.50)},
    "census": {3: (9.42, 6.46), 4: (6.22, 8.38), 5: (10.19, 12.00), 10: (6.02, 20.60)},
}

# IL of V-MDAV: Solanas & Martínez-Ballesté 2006, Table 1, with gamma = 1.1 where the table calls the
# data clustered (EIA with k = 5 and 10) and 0.2 elsewhere.
V_MDAV = {
    "tarragona": {3: 16.96, 4: 19.70, 5: 22.88, 10: 33.26},
    "census": {3: 5.69, 4: 7.52, 5: 8.98, 10: 14.07},
    "eia": {3: 0.53, 4: 0.75, 5: 1.30, 10: 2.82},
}
V_MDAV_CLUSTERED = {("eia", 5), ("eia", 10)}

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

# IL of orders cut optimally: Domingo-Ferrer, Martínez-Ballesté, Mateo-Sanz & Sebé 2006, as quoted in
# the tables of Kabir et al.; EIA for MDAV-MHM: Mortazavi 2020, Table 2.
NPN_MHM = {
    "tarragona": {3: 17.3949, 5: 27.0213, 10: 40.1831},
    "census": {3: 6.3498, 5: 11.3443, 10: 18.7335},
}
MDAV_MHM = {
    "tarragona": {3: 16.9326, 5: 22.4617, 10: 33.1923},
    "census": {3: 5.6523, 5: 9.0870, 10: 14.2239},
    "eia": {3: 0.41, 5: 1.26, 10: 3.77},
}
CBFS_MHM = {
    "tarragona": {3: 16.9714, 5: 22.8227, 10: 33.2188},
    "census": {3: 5.6734, 5: 8.8942, 10: 13.8925},
}
# Mortazavi, Jalili & Gohargazi 2013, Table 3.
IMHM = {
    "tarragona": {3: 16.9305, 4: 19.515, 5: 22.1861, 10: 30.7841},
    "census": {3: 5.3668, 4: 6.8577, 5: 8.4165, 10: 12.2284},
    "eia": {3: 0.37499, 4: 0.52236, 5: 0.75761, 10: 2.1788},
}
# Mortazavi 2020, Table 2.
IGD = {
    "tarragona": {3: 15.60, 5: 21.31, 10: 32.87},
    "census": {3: 5.33, 5: 8.37, 10: 12.65},
    "eia": {3: 0.39, 5: 0.76, 10: 2.02},
}
REP_ORD_MIC = {
    "tarragona": {3: 14.80, 5: 21.13, 10: 31.13},
    "census": {3: 5.01, 5: 7.94, 10: 12.74},
    "eia": {3: 0.369, 5: 0.75, 10: 1.99},
}

# The best losses that a prototype of our own had found, in up to several minutes a cell.
BEST_KNOWN = {
    "tarragona": {3: 14.4677, 4: 17.1162, 5: 20.2063, 10: 30.136},
    "census": {3: 4.6679, 4: 6.1968, 5: 7.4298, 10: 11.458},
    "eia": {3: 0.3513, 4: 0.4854, 5: 0.7423, 10: 1.9334},
}
