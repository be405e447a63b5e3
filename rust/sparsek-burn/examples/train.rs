// SPDX-License-Identifier: Apache-2.0

//! Trains two block-sparse layers to imitate a function of 64 numbers, and beside them two dense ones with the same weights
//! and a mask: `cargo run --release --example train`.

use burn::module::{Module, Param};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::activation::gelu;
use burn::tensor::{Device, Distribution, Tensor};
use burn_sparse::{BsrLinear, BsrLinearConfig};

/// 64 -> 256 -> 16, with a quarter of the blocks of each weight.
#[derive(Module, Debug)]
struct Sparse {
    first: BsrLinear,
    second: BsrLinear,
}

impl Sparse {
    fn new(device: &Device) -> Sparse {
        Sparse {
            first: BsrLinearConfig::new(64, 256, [16, 16], 0.25, 1).init(device),
            second: BsrLinearConfig::new(256, 16, [16, 16], 0.25, 2).init(device),
        }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(gelu(self.first.forward(x)))
    }
}

/// A dense layer whose weight, of (outputs, inputs), is multiplied with zeros and ones.
#[derive(Module, Debug)]
struct Masked {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
    mask: Tensor<2>,
}

impl Masked {
    fn of(layer: &BsrLinear) -> Masked {
        let weight = layer.weight().to_dense().detach();
        Masked {
            mask: weight.clone().abs().greater_elem(0.0).float(),
            weight: Param::from_tensor(weight),
            bias: Param::from_tensor(layer.bias.as_ref().expect("layers have one").val().detach()),
        }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let weight = self.weight.val() * self.mask.clone();
        x.matmul(weight.transpose()) + self.bias.val().unsqueeze()
    }
}

fn main() {
    let device = Device::flex().autodiff();
    device.seed(1);
    let x = Tensor::<2>::random([512, 64], Distribution::Normal(0.0, 1.0), &device);
    let teacher = Tensor::<2>::random([64, 16], Distribution::Normal(0.0, 0.1), &device);
    let y = x.clone().matmul(teacher).tanh();
    let loss = |got: Tensor<2>| (got - y.clone()).powf_scalar(2.0).mean();

    let mut sparse = Sparse::new(&device);
    let mut dense = vec![Masked::of(&sparse.first), Masked::of(&sparse.second)];
    let (mut of_sparse, mut of_dense) = (AdamConfig::new().init(), AdamConfig::new().init());
    for step in 0..=300 {
        let ours = loss(sparse.forward(x.clone()));
        let theirs = loss(dense[1].forward(gelu(dense[0].forward(x.clone()))));
        if step % 100 == 0 {
            let [ours, theirs] = [&ours, &theirs].map(|loss| loss.clone().into_scalar::<f32>());
            println!("step {step}: loss {ours:.4}, of dense layers with a mask {theirs:.4}");
        }
        let grads = GradientsParams::from_grads(ours.backward(), &sparse);
        sparse = of_sparse.step(0.01, sparse, grads);
        let grads = GradientsParams::from_grads(theirs.backward(), &dense);
        dense = of_dense.step(0.01, dense, grads);
    }
}
