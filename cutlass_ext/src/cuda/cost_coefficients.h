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

// Few columns on ordinary cores: instructions of blocks, groups of them, what is moved, and B read for each block.
struct FewCost {
  double launch;
  double streamed, bundled;  // by LaneLayout::cost, of each block: up to three columns, and more
  double group;              // of blocks that are copied together
  double memory;             // share of the device memory's rate
  double l2_rate;            // what all SMs together read of B
  double panel;              // in addition for each further panel of columns, as a share: it reads A again
  double large;              // as many times as long with large blocks, which leave less room for B in L1
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

// cuSPARSE on CSR: an element of A by a vector, or by the columns of B.
struct CsrCost {
  double launch;
  double vector;   // an element of A by a vector
  double element;  // by several columns
  double byte;     // in addition for each byte of those columns
  double row;      // an element of the longest row, of several columns
  double memory;   // share of the device memory's rate
};

struct CostCoefficients {
  TiledCost skinny_16, skinny_64, collective_64, collective_128, gather;
  SimtCost simt;
  DenseCost dense;
  BsrCost bsr;
  BellCost bell;
  CsrCost csr;
  FewCost few;
  TiledCost planes;  // mma: of one product of planes
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
    {4.564, 1.828, 0.05995, 0.009979, 1.662e+08, 2.261, 0.9916},
    {10.72, 4.869e-06, 4.957e-08, 6.503e-08, 0.003607, 0.2338},
    {13.36, 8.381e-06, 3.151e-06, 0.0003689, 0.5047, 6.026e+08, 0.004979, 1.875},
    {10.76, 1.951, 0.01575, 0.2601, 0.003315, 0.02043, 0.4864, 8.158e+06, 1.109, 0, 0, 0},
};
// to here.

}  // namespace sparsek::cuda
