// SPDX-License-Identifier: Apache-2.0

//! The layer, its record, and training.

use burn::module::{Module, ModuleMapper, Param};
use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::activation::gelu;
use burn::tensor::{Device, Distribution, Int, Tensor, Tolerance};
use burn_sparse::{BsrLinear, BsrLinearConfig};

fn library() -> bool {
    let error = burn_sparse::check().err();
    assert!(
        error.is_none() || std::env::var_os("SPARSEK_LIBRARY").is_none(),
        "{error:?}"
    );
    error.is_none()
}

fn random<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::random(shape, Distribution::Uniform(-1.0, 1.0), device)
}

fn close<const D: usize>(got: Tensor<D>, want: Tensor<D>) {
    got.into_data()
        .assert_approx_eq::<f32>(&want.into_data(), Tolerance::absolute(1e-5));
}

#[test]
fn a_layer_is_a_dense_one_with_zeros() {
    if !library() {
        return;
    }
    let device = Device::flex();
    for bias in [true, false] {
        let layer = BsrLinearConfig::new(24, 32, [8, 4], 0.5, 1)
            .with_bias(bias)
            .init(&device);
        assert_eq!((layer.pattern().blocks(), layer.bias.is_some()), (12, bias));
        let (x, weight) = (random([2, 5, 24], &device), layer.weight().to_dense());
        let mut want = x.clone().matmul(weight.transpose().unsqueeze());
        if let Some(bias) = &layer.bias {
            want = want + bias.val().unsqueeze();
        }
        close(layer.forward(x), want);
    }
    assert_eq!(
        BsrLinearConfig::new(24, 32, [8, 4], 0.5, 1).init(&device).num_params(),
        12 * 32 + 32
    );
}

#[test]
fn a_record_has_the_index() {
    if !library() {
        return;
    }
    let device = Device::flex();
    let x = random([3, 16], &device);
    let layer = |seed: u64| BsrLinearConfig::new(16, 16, [4, 4], 0.5, seed).init(&device);
    let (from, to) = (layer(2), layer(3));
    assert_ne!(from.pattern().col_idx(), to.pattern().col_idx());
    let want = from.forward(x.clone());
    let file = std::env::temp_dir().join(format!("burn-sparse-{}.bpk", std::process::id()));
    from.clone().save_file(&file).unwrap();
    let loaded = to.load_file(&file);
    assert_eq!(loaded.pattern().col_idx(), from.pattern().col_idx());
    assert_eq!(loaded.pattern().row_ptr(), from.pattern().row_ptr());
    close(loaded.forward(x), want);
    std::fs::remove_file(&file).unwrap(); // Burn reads it when the values are used

    let other = BsrLinearConfig::new(16, 16, [4, 4], 0.25, 4).init(&device);
    let error = other.try_load_record(from.into_record()).unwrap_err().to_string();
    assert!(error.contains("values: shape mismatch"), "{error}");
}

/// A mapper that makes each int another one.
struct Spoil;

impl ModuleMapper for Spoil {
    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        param.map(|index| index + 7)
    }
}

#[test]
fn a_faulty_index_is_said_when_it_is_used() {
    let layer = BsrLinearConfig::new(16, 16, [4, 4], 0.5, 2).init(&Device::flex());
    let spoilt = layer.map(&mut Spoil);
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| spoilt.weight())).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(
        text.contains("the index of a layer: row_ptr does not go from 0"),
        "{text}"
    );
}

#[test]
fn a_layer_keeps_its_index_where_burn_maps_it() {
    let device = Device::flex();
    let layer = BsrLinearConfig::new(16, 16, [4, 4], 0.5, 2).init(&device);
    let index = (layer.pattern().row_ptr().to_vec(), layer.pattern().col_idx().to_vec());
    for other in [
        layer.clone().train(),
        layer.valid(),
        layer.clone().fork(&device),
        layer.clone().to_device(&device),
        layer.clone().materialize(),
        layer.clone().no_grad(),
    ] {
        assert_eq!(
            (other.pattern().row_ptr(), other.pattern().col_idx()),
            (&index.0[..], &index.1[..])
        );
        assert_eq!(other.devices(), std::slice::from_ref(&device));
    }
    let text = format!("{layer}");
    assert!(text.contains("BsrLinear") && text.contains("16x16 in 4x4"), "{text}");
}

#[derive(Module, Debug)]
struct Sparse {
    first: BsrLinear,
    second: BsrLinear,
}

impl Sparse {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(gelu(self.first.forward(x)))
    }
}

/// The same with dense weights, of (outputs, inputs), that are multiplied with a mask of zeros and ones.
#[derive(Module, Debug)]
struct Masked {
    weights: Vec<Param<Tensor<2>>>,
    biases: Vec<Param<Tensor<1>>>,
    masks: Vec<Tensor<2>>,
}

impl Masked {
    fn new(layers: [&BsrLinear; 2]) -> Masked {
        let dense = |layer: &BsrLinear| layer.weight().to_dense().detach();
        let mask = |layer: &BsrLinear| dense(layer).abs().greater_elem(0.0).float();
        Masked {
            weights: layers.map(|layer| Param::from_tensor(dense(layer))).to_vec(),
            biases: layers
                .map(|layer| Param::from_tensor(layer.bias.as_ref().unwrap().val().detach()))
                .to_vec(),
            masks: layers.map(mask).to_vec(),
        }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let layer = |x: Tensor<2>, i: usize| {
            let weight = self.weights[i].val() * self.masks[i].clone();
            x.matmul(weight.transpose()) + self.biases[i].val().unsqueeze()
        };
        layer(gelu(layer(x, 0)), 1)
    }
}

/// The loss of each step of a training.
fn train<M: Module>(
    mut model: M,
    forward: impl Fn(&M, Tensor<2>) -> Tensor<2>,
    x: &Tensor<2>,
    y: &Tensor<2>,
) -> Vec<f32> {
    let mut optimizer = SgdConfig::new().init();
    let steps = 0..150;
    let losses = steps.map(|_| {
        let loss = (forward(&model, x.clone()) - y.clone()).powf_scalar(2.0).mean();
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(0.3, model.clone(), grads);
        loss.into_scalar::<f32>()
    });
    losses.collect()
}

#[test]
fn training_goes_as_that_of_the_dense_layers_with_a_mask() {
    if !library() {
        return;
    }
    let device = Device::flex().autodiff();
    let model = Sparse {
        first: BsrLinearConfig::new(16, 32, [8, 4], 0.5, 3).init(&device),
        second: BsrLinearConfig::new(32, 8, [4, 8], 0.5, 4).init(&device),
    };
    let dense = Masked::new([&model.first, &model.second]);
    let x = random([64, 16], &device);
    let y = (x.clone().matmul(random([16, 8], &device)) * 0.5).tanh();
    let (ours, theirs) = (
        train(model, Sparse::forward, &x, &y),
        train(dense, Masked::forward, &x, &y),
    );
    for (step, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert!(
            (ours - theirs).abs() < 1e-4 * theirs,
            "step {step}: {ours} and {theirs}"
        );
    }
    assert!(ours[149] < 0.5 * ours[0], "{} became {}", ours[0], ours[149]);
}
