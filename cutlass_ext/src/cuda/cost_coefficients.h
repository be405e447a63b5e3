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

// The ordinary cores. Three values are for elements of 2, 4 and 8 bytes.
struct SimtCost {
  double launch;
  double tile;
  double column[3];  // what a tile waits for, for a column of a block by at most 32 rows of it
  double issue[3];   // what an SM issues, for a column by eight rows and 32 columns of B
  double tiles[3];   // of an SM whose waits overlap
};

// A way of few_columns. Three values are for elements of B of 2, 4 and 8 bytes; of tensor cores, which have 2 bytes,
// the second is for one column, which is multiplied otherwise.
struct LaneCost {
  double launch;
  double issue[3];   // by LaneLayout::cost, of each block; of tensor cores for 8 x 8 of it by 8 columns
  double memory;     // share of the device memory's rate
  double l2_rate;    // what all SMs together read of B
  double others;     // share of all but the longest of these four
  double wait[3];    // for a block, in a lane; of tensor cores, for each 8 columns of it
  double wait_cost;  // in addition by LaneLayout::cost, or by the tiles of a warp
  double turn;       // for a chunk, beside its blocks
  double missed;     // of what L2 may not hold, the share that comes from memory
  double l2_share;   // that B has
  double join;       // the kernel that adds up the sums of rows that are cut
  double join_rate;  // of such sums
};

// skinny_fma. A unit is 16 rows of 128 bytes of A. Two values are for elements of 4 and 8 bytes.
struct SkinnyFmaCost {
  double launch;
  double column[2];  // what an SM issues, for a unit by a column
  double tile;       // what a tile waits for, beside its units
  double step;       // a unit of a warp
  double width;      // in addition for each 4 bytes of columns
  double memory;     // share of the device memory's rate
};

// row_window. The factors are for products where it is slower than the rest says.
struct WindowCost {
  double launch;
  double issue;      // by LaneLayout::cost, of each block
  double memory;     // share of the device memory's rate
  double l2_rate;    // what all SMs together read of B
  double others;     // share of all but the longest of these three
  double wait;       // for a block and LaneLayout::cost, in a lane
  double missed;     // of what L2 may not hold, the share that comes from memory
  double few;        // fewer columns of larger blocks
  double apart;      // rows of fp32 that have no columns in common with their neighbours
  double uneven[2];  // long or uneven rows, of 4 and 8 bytes
  double narrow[2];  // fewer columns than it is made for
  double single[2];  // in addition, microseconds where columns are read one by one
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
  TiledCost packed;
  WindowCost window;
  SkinnyFmaCost skinny_fma;
  TiledCost dmma_fp32;  // mma: by 64 columns
};

// Written by scripts/fit_cost_model.py: from here on
constexpr CostCoefficients kCostCoefficients = {
    {5.391, 0.9837, 0.07998, 0.1185, 0.151, 0.05136, 0.1457, 1.187e+07, 0.8643, 0.7669, 0, 0},
    {5.837, 0.9804, 0.3586, 0.1342, 0.1725, 0.04507, 0.1887, 1.008e+07, 0.909, 1.671, 0, 0},
    {6.005, 1.637, 0.5597, 0.01667, 0.02891, 0.002809, 0.5595, 9.376e+06, 1.048, 0, 0, 0},
    {6.49, 0.9581, 0.8536, 0.02881, 0.5458, 0.003, 0.2117, 1.171e+07, 1.269, 0, 0, 0},
    {6.706, 1.473, 0.66, 0.02917, 0.09868, 0.004901, 0.6808, 1.039e+07, 0.9873, 0, 6.46, 4.452},
    {15.16, 0.0009688, 0.2484, 0.2146, 0.2375, 0.01895, 0.009827, 0.0136, 6.06, 8.011, 5.348},
    {5.729, 9.404e+08, 2.289e+07, 0.08916, 1.051, 0.6113, 2.913, 0.936},
    {7.236, 1.476e+07, 0.4651, 0.002451, 9.205e-06},
    {5.207, 1.782, 0.006937, 0.01115, 2.82e+08, 2.107, 1.017},
    {15.68, 1.032e-07, 4.254, 1.157e-05, 7.42e-06, 8.884e-06, 0.0002854, 0.0004586, 0.0005467, 0.8876, 0.00284, 0.05655,
     0.07286, 0.08563, 0.06546, 0.02331, 0.04868},
    {9.063, 5.525e-08, 4.754e-06, 3.276e-09, 0.4385, 9.734e+09, 0.7668, 0.2001, 0.0002635, 0.0005979, 0.000388, 0.00613,
     1, 0.7, 1.12, 1.903e+05},
    {1.325, 1.724e-06, 1.968e-06, 7.966e-07, 0.3593, 3.337e+07, 0.554, 0.4218, 0.3562, 0.2027, 0.001056, 6.538, 0.4664,
     0.3015, 4.986, 2.892e+06},
    {0.2978, 6.443e-06, 5.914e-06, 6.792e-06, 2.48, 1.952e+09, 0.5218, 0.0009767, 0.04294, 0.07875, 0.0009067, 9.162,
     1.248, 0.4951, 23.77, 8.461e+06},
    {7.357, 7.238e-07, 1.115e-07, 5.617e-08, 0.5812, 3.387e+07, 0.878, 0.1246, 0.1171, 0.07289, 0.001781, 0.01675,
     0.6585, 0.5436, 4.55, 1.247e+06},
    {7.418, 1.401e-05, 4.984e-05, 0, 0.5425, 8.85e+06, 0.2601, 0.07733, 0.05607, 0, 0.003319, 0.006541, 2.199, 2.799,
     4.14, 7.998e+05},
    {8.586, 2.194, 0.001263, 0.2162, 0.2204, 5.673e-05, 0.4935, 8.087e+06, 1.457, 0, 0, 0},
    {6.404, 1.799, 0.009725, 0.2143, 0.0309, 0.04576, 3.863, 1.089e+07, 1.102, 0, 0, 0},
    {3.235, 5.083, 0.1508, 0.000503, 0.07791, 0, 0.04663, 1.391e+07, 0.8071, 0, 0, 0},
    {11.62, 1.083e-06, 0.9598, 6.292e+06, 0.5463, 0.001493, 0.6221, 1.058, 0.8185, 1.856, 1.735, 1.478, 1.598, 3.822,
     1.416},
    {4.879, 0.008618, 0.00575, 2.714, 0.5276, 0.01967, 0.95},
    {7.322, 0.0004641, 0.003469, 0.1684, 0.0002464, 0.04392, 3.386, 5.697e+06, 0.4866, 0, 0, 0},
};
// to here.

}  // namespace sparsek::cuda
