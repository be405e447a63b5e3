// SPDX-License-Identifier: Apache-2.0

//! Trains two block-sparse layers to imitate a function of 64 numbers: `cargo run --release --example train`.

use burn::module::Module;
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::activation::gelu;
use burn::tensor::{Device, Distribution, Tensor};
use burn_sparse::{BsrLinear, BsrLinearConfig};

/// 64 -> 256 -> 16, with a quarter of the blocks of each weight.
#[derive(Module, Debug)]
struct Mlp {
    first: BsrLinear,
    second: BsrLinear,
}

impl Mlp {
    fn new(device: &Device) -> Mlp {
        Mlp {
            first: BsrLinearConfig::new(64, 256, [16, 16], 0.25, 1).init(device),
            second: BsrLinearConfig::new(256, 16, [16, 16], 0.25, 2).init(device),
        }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(gelu(self.first.forward(x)))
    }
}

fn main() {
    let device = Device::flex().autodiff();
    device.seed(1);
    let x = Tensor::<2>::random([512, 64], Distribution::Normal(0.0, 1.0), &device);
    let teacher = Tensor::<2>::random([64, 16], Distribution::Normal(0.0, 0.1), &device);
    let y = x.clone().matmul(teacher).tanh();

    let (mut model, mut optimizer) = (Mlp::new(&device), AdamConfig::new().init());
    for step in 0..=300 {
        let loss = (model.forward(x.clone()) - y.clone()).powf_scalar(2.0).mean();
        if step % 100 == 0 {
            println!("step {step}: loss {:.4}", loss.clone().into_scalar::<f32>());
        }
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(0.01, model, grads);
    }
}
