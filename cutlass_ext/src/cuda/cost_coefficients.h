// SPDX-License-Identifier: Apache-2.0
// Coefficients of the cost model (cost_model.cpp). scripts/fit_cost_model.py fits them to measured products and
// writes the values below: docs/tuning.md, "The cost model".
//
// Times are microseconds at kFittedClock; a rate is bytes a microsecond of kFittedSms SMs at that clock, or a share of
// what the device memory's clock and bus allow. All members are double: the script sets them by their place.
#pragma once

namespace sparsek::cuda {

constexpr double kFittedClock = 1.98e9, kFittedSms = 132;

// A family of our kernels on tensor cores.
struct TiledCost {
  double launch;    // the launch, the way in and the way out
  double tile;      // a tile, beside its entries
  double epilogue;  // in addition for 128 x 256 elements of C, less where a tile is smaller
  double entry;     // an entry: a block column of a row group
  double box_b;     // a bulk copy of rows of B
  double box_a;     // a bulk copy of A; wgmma_gather: the look-up of a slot
  double mma;       // 64 columns of A by one tile on the tensor cores, where all rows have blocks
  double l2_rate;   // what all SMs together read out of L2
  double memory;    // share of the device memory's rate
  double cluster;   // CTAs of a cluster bring their sums together
  double join;      // a second kernel adds up the parts of split tiles
  double part;      // in addition for parts as wide as a tile
};

// The ordinary cores, one product after the other.
struct SimtCost {
  double launch;
  double tile;
  double column;  // one column of a block by at most 32 rows of it
  double warp;    // in addition for each warp of a CTA that is busy
};

// A way of few_columns. Three values are for elements of B of 2, 4 and 8 bytes.
struct LaneCost {
  double launch;
  double issue[3];   // by LaneLayout::cost, of each block; of tensor cores for 8 x 8 of it by 8 columns
  double memory;     // share of the device memory's rate
  double l2_rate;    // what all SMs together read of B
  double others;     // share of all but the longest of these four
  double wait[3];    // for a block, in a lane; of tensor cores, for each 8 columns of it
  double wait_cost;  // in addition by LaneLayout::cost, or by the tiles of a warp
  double missed;     // of what L2 may not hold, the share that comes from memory
  double l2_share;   // that B has
  double join;       // the kernel that adds up the sums of rows that are cut
  double join_rate;  // of such sums
};

// cuBLAS: tiles in waves, the best of several shapes and splits of K.
struct DenseCost {
  double launch;
  double mma_rate;  // operations a microsecond
  double l2_rate;
  double step;    // the least that 64 columns take
  double tile;    // a tile of 128 x 256, less where it is smaller
  double split;   // each part that K is split into
  double sums;    // a million sums of such a part
  double memory;  // share of the device memory's rate
};

// cuSPARSE on BSR: the ordinary cores, or the longest block row.
struct BsrCost {
  double launch;
  double rate;   // operations a microsecond
  double block;  // a block of the longest row
  double area;   // in addition for an element of it
  double entry;  // a block by each column of B
};

// cuSPARSE on Blocked-ELL: a tile is a block row by 128 columns, and as long as the longest row.
struct BellCost {
  double launch;
  double tile;
  double block;   // a block of a row
  double column;  // in addition for a column of it
  double rate;    // operations a microsecond
  double tiles;   // of an SM at once
  double memory;  // share of the device memory's rate
};

// cuSPARSE on CSR. Three values are for elements of 2, 4 and 8 bytes.
struct CsrCost {
  double launch_of_vector;
  double vector;  // an element of A by a vector
  double launch;
  double element[3];  // by a panel of columns
  double row[3];      // a row of A, by such a panel
  double memory;      // share of the device memory's rate
  double shared;      // an element of the longest row where rows are shared out,
  double whole[3];    // where they are not,
  double wide[3];     // and of longer rows, by more lanes
};

struct CostCoefficients {
  TiledCost skinny_16, skinny_64, collective_64, collective_128, gather;
  SimtCost simt;
  DenseCost dense;
  BsrCost bsr;
  BellCost bell;
  CsrCost csr;
  LaneCost stream, bundles, singles, fixed, tensor;  // the ways of few_columns
  TiledCost planes;                                  // mma: of one product of planes
  TiledCost dmma;                                    // mma: by 128 columns
};

// Written by scripts/fit_cost_model.py: from here on
constexpr CostCoefficients kCostCoefficients = {
    {5.391, 0.9837, 0.07998, 0.1185, 0.151, 0.05136, 0.1457, 1.187e+07, 0.8643, 0.7669, 0, 0},
    {5.837, 0.9804, 0.3586, 0.1342, 0.1725, 0.04507, 0.1887, 1.008e+07, 0.909, 1.671, 0, 0},
    {6.005, 1.637, 0.5597, 0.01667, 0.02891, 0.002809, 0.5595, 9.376e+06, 1.048, 0, 0, 0},
    {6.49, 0.9581, 0.8536, 0.02881, 0.5458, 0.003, 0.2117, 1.171e+07, 1.269, 0, 0, 0},
    {6.706, 1.473, 0.66, 0.02917, 0.09868, 0.004901, 0.6808, 1.039e+07, 0.9873, 0, 6.46, 4.452},
    {5.798, 3.385, 0.2314, 0.01328},
    {5.729, 9.404e+08, 2.289e+07, 0.08916, 1.051, 0.6113, 2.913, 0.936},
    {7.236, 1.476e+07, 0.4651, 0.002451, 9.205e-06},
    {5.207, 1.782, 0.006937, 0.01115, 2.82e+08, 2.107, 1.017},
    {15.68, 1.032e-07, 4.254, 1.157e-05, 7.42e-06, 8.884e-06, 0.0002854, 0.0004586, 0.0005467, 0.8876, 0.00284, 0.05655,
     0.07286, 0.08563, 0.06546, 0.02331, 0.04868},
    {7.98, 2.263e-06, 1.237e-05, 3.479e-08, 0.3326, 9.468e+08, 0.4354, 0.1672, 0.0009934, 0.0004325, 0.0009435, 1, 0.7,
     3.504, 1.604e+05},
    {6.735, 1.592e-06, 1.72e-06, 1.981e-09, 0.3555, 4.261e+09, 0.8112, 0.001135, 0.0007234, 0.07705, 0.002752, 0.7432,
     0.736, 6.903, 8.965e+05},
    {13.68, 1.481e-05, 5.595e-06, 1.739e-06, 0.829, 4.733e+07, 0.2949, 0.0002808, 0.03296, 0.03682, 0.007786, 1.248,
     0.4951, 2.205, 2.917e+06},
    {7.317, 8.761e-07, 5.929e-07, 1.344e-06, 0.6604, 6.194e+07, 0.7955, 0.1514, 0.1448, 0.002133, 0.001798, 0.833,
     0.5474, 7.019, 1.844e+06},
    {6.729, 2.034e-05, 2.3e-05, 2.3e-05, 0.3128, 7.068e+06, 0.08345, 0.1329, 0.02, 0.02, 0.00223, 0.3436, 0.3711, 5.719,
     6.645e+05},
    {10.76, 1.951, 0.01575, 0.2601, 0.003315, 0.02043, 0.4864, 8.158e+06, 1.109, 0, 0, 0},
    {7.221, 1.628, 0.1066, 0.01393, 0.223, 0.05237, 3.584, 9.557e+06, 1.123, 0, 0, 0},
};
// to here.

}  // namespace sparsek::cuda
