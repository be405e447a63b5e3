// SPDX-License-Identifier: Apache-2.0

//! The layer, its record, and training.

use burn::module::{Module, Param};
use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::activation::gelu;
use burn::tensor::{Device, Distribution, Tensor, Tolerance};
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
        assert_eq!((layer.pattern.blocks(), layer.bias.is_some()), (12, bias));
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
fn a_record_is_loaded_into_a_layer_of_the_pattern() {
    if !library() {
        return;
    }
    let device = Device::flex();
    let config = BsrLinearConfig::new(16, 16, [4, 4], 0.5, 2);
    let (from, to) = (config.init(&device), config.init(&device));
    let x = random([3, 16], &device);
    let want = from.forward(x.clone());
    let file = std::env::temp_dir().join(format!("burn-sparse-{}.bpk", std::process::id()));
    from.save_file(&file).unwrap();
    let loaded = to.load_file(&file);
    close(loaded.forward(x), want);
    std::fs::remove_file(&file).unwrap();
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
