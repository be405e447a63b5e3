// SPDX-License-Identifier: Apache-2.0

use std::fmt;

use burn::module::{
    Content, Devices, Initializer, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor, Param,
    ParamId,
};
use burn::tensor::{Device, Int, Tensor};

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
        BsrLinear::of_params(
            self.pattern.clone(),
            initializer.init([blocks, bm, bk], device),
            self.bias.then(|| initializer.init([outputs], device)),
        )
    }
}

/// A linear layer with a block-sparse weight: y = x W^T + bias.
///
/// Its record has the values, the bias, and W's index, under the names that the Python package gives them in a state dict:
/// `values`, `bias`, `crow` and `col`. A layer of the same extents, block and number of blocks takes the index of what it
/// loads; where the number differs, Burn says that shapes do.
#[derive(Clone, Debug)]
pub struct BsrLinear {
    /// The values of W's blocks, (blocks, bm, bk).
    pub values: Param<Tensor<3>>,
    /// (outputs)
    pub bias: Option<Param<Tensor<1>>>,
    /// Where the blocks of each block row begin, and last how many there are.
    crow: Param<Tensor<1, Int>>,
    /// The block column of each block.
    col: Param<Tensor<1, Int>>,
    /// The pattern of that index, or what is wrong with the index.
    pattern: Result<BsrPattern, String>,
}

impl BsrLinear {
    /// A layer with the weight of another, (outputs, inputs), and its bias, (outputs).
    pub fn of_weight(weight: BsrTensor, bias: Option<Tensor<1>>) -> BsrLinear {
        let values = Param::from_tensor(weight.values().clone());
        BsrLinear::of_params(weight.pattern().clone(), values, bias.map(Param::from_tensor))
    }

    fn of_params(pattern: BsrPattern, values: Param<Tensor<3>>, bias: Option<Param<Tensor<1>>>) -> BsrLinear {
        let device = values.lazy_device();
        let index = |index: &[i32]| Param::initialized(ParamId::new(), Tensor::<1, Int>::from_data(index, &device));
        BsrLinear {
            crow: index(pattern.row_ptr()),
            col: index(pattern.col_idx()),
            pattern: Ok(pattern),
            values,
            bias,
        }
    }

    /// Where W, of (outputs, inputs), has blocks.
    ///
    /// # Panics
    ///
    /// Where the layer has loaded a faulty index.
    pub fn pattern(&self) -> &BsrPattern {
        match &self.pattern {
            Ok(pattern) => pattern,
            Err(fault) => panic!("the index of a layer: {fault}"),
        }
    }

    /// The weight, of (outputs, inputs).
    ///
    /// # Panics
    ///
    /// As [`BsrLinear::pattern`].
    pub fn weight(&self) -> BsrTensor {
        BsrTensor::new(self.pattern().clone(), self.values.val())
    }

    /// y = x W^T + bias, of (.., outputs), for x of (.., inputs).
    ///
    /// # Panics
    ///
    /// Where the extents or types differ, where there is no libsparsek, and as [`BsrLinear::pattern`].
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let [outputs, inputs] = self.pattern().shape();
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

    /// The same layer with parameters of which each has been mapped.
    fn mapped(
        self,
        values: impl FnOnce(Param<Tensor<3>>) -> Param<Tensor<3>>,
        bias: impl FnOnce(Option<Param<Tensor<1>>>) -> Option<Param<Tensor<1>>>,
        index: impl Fn(Param<Tensor<1, Int>>) -> Param<Tensor<1, Int>>,
    ) -> BsrLinear {
        BsrLinear {
            values: values(self.values),
            bias: bias(self.bias),
            crow: index(self.crow),
            col: index(self.col),
            pattern: self.pattern,
        }
    }

    /// Takes the index of the parameters where it is another than that of the pattern.
    fn with_its_index(mut self) -> BsrLinear {
        let of = |index: &Param<Tensor<1, Int>>| -> Option<Vec<i32>> {
            let data = index.val().into_data();
            data.iter::<i64>().map(|element| element.try_into().ok()).collect()
        };
        // A faulty index stays one: the extents are gone with the pattern.
        let Ok(pattern) = &self.pattern else { return self };
        let (row_ptr, col_idx) = (of(&self.crow), of(&self.col));
        if row_ptr.as_deref() == Some(pattern.row_ptr()) && col_idx.as_deref() == Some(pattern.col_idx()) {
            return self;
        }
        let [rows, cols] = pattern.shape();
        self.pattern = match (row_ptr, col_idx) {
            (Some(row_ptr), Some(col_idx)) => BsrPattern::checked(rows, cols, pattern.block(), row_ptr, col_idx),
            _ => Err("it has elements that are no block's".to_owned()),
        };
        self
    }
}

/// What Burn's visitors are told of the fields.
const CONTAINER: &str = "Struct:BsrLinear";

impl Module for BsrLinear {
    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        fn field<V: ModuleVisitor>(visitor: &mut V, name: &str, module: &impl Module) {
            visitor.enter_module(name, CONTAINER);
            module.visit(visitor);
            visitor.exit_module(name, CONTAINER);
        }
        field(visitor, "values", &self.values);
        field(visitor, "bias", &self.bias);
        field(visitor, "crow", &self.crow);
        field(visitor, "col", &self.col);
    }

    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        fn field<M: ModuleMapper, T: Module>(mapper: &mut M, name: &str, module: T) -> T {
            mapper.enter_module(name, CONTAINER);
            let mapped = module.map(mapper);
            mapper.exit_module(name, CONTAINER);
            mapped
        }
        let BsrLinear {
            values,
            bias,
            crow,
            col,
            pattern,
        } = self;
        let mapped = BsrLinear {
            values: field(mapper, "values", values),
            bias: field(mapper, "bias", bias),
            crow: field(mapper, "crow", crow),
            col: field(mapper, "col", col),
            pattern,
        };
        mapped.with_its_index()
    }

    fn collect_devices(&self, devices: Devices) -> Devices {
        let devices = self.bias.collect_devices(self.values.collect_devices(devices));
        self.col.collect_devices(self.crow.collect_devices(devices))
    }

    fn fork(self, device: &Device) -> Self {
        self.mapped(
            |values| values.fork(device),
            |bias| bias.fork(device),
            |index| index.fork(device),
        )
    }

    fn to_device(self, device: &Device) -> Self {
        self.mapped(
            |values| values.to_device(device),
            |bias| bias.to_device(device),
            |index| index.to_device(device),
        )
    }

    fn train(self) -> Self {
        self.mapped(Module::train, Module::train, Module::train)
    }

    fn valid(&self) -> Self {
        self.clone()
            .mapped(|values| values.valid(), |bias| bias.valid(), |index| index.valid())
    }

    fn materialize(self) -> Self {
        self.mapped(Module::materialize, Module::materialize, Module::materialize)
    }
}

impl ModuleDisplayDefault for BsrLinear {
    fn content(&self, content: Content) -> Option<Content> {
        content
            .set_top_level_type("BsrLinear")
            .add("values", &self.values)
            .add("bias", &self.bias)
            .add_debug_attribute("pattern", self.pattern())
            .optional()
    }
}

impl ModuleDisplay for BsrLinear {}

impl fmt::Display for BsrLinear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format(Default::default()))
    }
}
