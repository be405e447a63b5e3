// SPDX-License-Identifier: Apache-2.0

use burn::module::{Initializer, Module, Param};
use burn::tensor::{Device, Tensor};

use crate::pattern::share_of;
use crate::{BsrPattern, BsrTensor};

/// What a [`BsrLinear`] is made of.
#[derive(Clone, Debug)]
pub struct BsrLinearConfig {
    pattern: BsrPattern,
    bias: bool,
}

impl BsrLinearConfig {
    /// A layer whose weight, of (outputs, inputs), has blocks where the pattern has them.
    pub fn of_pattern(pattern: BsrPattern) -> BsrLinearConfig {
        BsrLinearConfig { pattern, bias: true }
    }

    /// A layer whose weight has the share `density` of its blocks, rounded up, as many in each block row up to one, at
    /// places that `seed` chooses.
    ///
    /// # Panics
    ///
    /// Where the extents are no multiples of the block's, and where `density` is not in 0..=1.
    pub fn new(inputs: usize, outputs: usize, block: [usize; 2], density: f64, seed: u64) -> BsrLinearConfig {
        assert!((0.0..=1.0).contains(&density), "a density of {density} is not in 0..=1");
        let [bm, bk] = block;
        assert!(
            bm > 0 && bk > 0 && outputs.is_multiple_of(bm) && inputs.is_multiple_of(bk),
            "{outputs} x {inputs} is no multiple of blocks of {bm} x {bk}"
        );
        let (down, across) = (outputs / bm, inputs / bk);
        let total = share_of(down * across, density);
        let mut mask = vec![false; down * across];
        let mut state = seed;
        let mut random = |below: usize| {
            // SplitMix64
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) % below as u64) as usize
        };
        for row in 0..down {
            let count = total * (row + 1) / down - total * row / down;
            let mut columns: Vec<usize> = (0..across).collect();
            for place in 0..count {
                columns.swap(place, place + random(across - place));
                mask[row * across + columns[place]] = true;
            }
        }
        BsrLinearConfig::of_pattern(BsrPattern::of_mask(outputs, inputs, block, &mask))
    }

    /// Whether the layer adds a bias; it does otherwise.
    #[must_use]
    pub fn with_bias(mut self, bias: bool) -> BsrLinearConfig {
        self.bias = bias;
        self
    }

    /// A layer with random parameters, of U(-k, k) with k = sqrt(1 / inputs that an output reads, on average).
    pub fn init(&self, device: &Device) -> BsrLinear {
        let ([outputs, _], [bm, bk]) = (self.pattern.shape(), self.pattern.block());
        let blocks = self.pattern.blocks();
        let read = (blocks * bk) as f64 / (outputs / bm).max(1) as f64;
        let k = (1.0 / read.max(1.0)).sqrt();
        let initializer = Initializer::Uniform { min: -k, max: k };
        BsrLinear {
            values: initializer.init([blocks, bm, bk], device),
            bias: self.bias.then(|| initializer.init([outputs], device)),
            pattern: self.pattern.clone(),
        }
    }
}

/// A linear layer with a block-sparse weight: y = x W^T + bias.
///
/// Its record has the values and the bias. The pattern is no part of it: a record is loaded into a layer that was made
/// with the same pattern.
#[derive(Module, Debug)]
pub struct BsrLinear {
    /// The values of W's blocks, (blocks, bm, bk).
    pub values: Param<Tensor<3>>,
    /// (outputs)
    pub bias: Option<Param<Tensor<1>>>,
    /// Where W, of (outputs, inputs), has blocks.
    #[module(skip)]
    pub pattern: BsrPattern,
}

impl BsrLinear {
    /// A layer with the weight of another, (outputs, inputs), and its bias, (outputs).
    pub fn of_weight(weight: BsrTensor, bias: Option<Tensor<1>>) -> BsrLinear {
        BsrLinear {
            values: Param::from_tensor(weight.values().clone()),
            bias: bias.map(Param::from_tensor),
            pattern: weight.pattern().clone(),
        }
    }

    /// The weight, of (outputs, inputs).
    pub fn weight(&self) -> BsrTensor {
        BsrTensor::new(self.pattern.clone(), self.values.val())
    }

    /// y = x W^T + bias, of (.., outputs), for x of (.., inputs).
    ///
    /// # Panics
    ///
    /// Where the extents or types differ, and where there is no libsparsek.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let [outputs, inputs] = self.pattern.shape();
        let mut shape = x.dims();
        assert_eq!(shape[D - 1], inputs, "a layer of {inputs} inputs");
        let rows = shape[..D - 1].iter().product::<usize>();
        let x = x.reshape([rows, inputs]);
        let mut y = self.weight().linear(x);
        if let Some(bias) = &self.bias {
            y = y + bias.val().unsqueeze();
        }
        shape[D - 1] = outputs;
        y.reshape(shape)
    }
}
