// SPDX-License-Identifier: Apache-2.0

//! What Burn's operation costs above the product by crate `sparsek`, in turn with it: `cargo run --release --example
//! product_times`. Density 10 %, blocks of 32 x 32, f32. Burn's operation returns a new tensor, so the crate's product is
//! timed into memory that is kept and into a new vector.

use std::time::{Duration, Instant};

use burn::tensor::{Device, Distribution, Tensor};
use burn_sparse::BsrTensor;
use sparsek::{Bsr, Context, MatMut, MatRef, Pattern, PlanOptions};

const ROUNDS: usize = 101;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex();
    let context = Context::cpu()?;
    for (size, n) in [(256, 32), (1024, 128), (2048, 512)] {
        let dense = Tensor::<2>::random([size, size], Distribution::Default, &device);
        let a = BsrTensor::from_dense(dense.clone(), [32, 32], 0.1);
        let b = Tensor::<2>::random([size, n], Distribution::Default, &device);

        let bsr = Bsr::new(size, size, (32, 32), a.pattern().row_ptr(), a.pattern().col_idx());
        let plan = Pattern::<f32>::new(&context, &bsr)?.plan(&PlanOptions::new(n))?;
        let values: Vec<f32> = a.values().clone().into_data().iter::<f32>().collect();
        let from = b.clone().into_data().iter::<f32>().collect::<Vec<_>>();
        let multiply = |to: &mut [f32]| -> Result<(), sparsek::Error> {
            plan.multiply(&values, MatRef::new(&from, size, n)?, MatMut::new(to, size, n)?)
        };
        let mut kept = vec![0f32; size * n];

        let (mut by_burn, mut into_kept, mut into_new) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let begin = Instant::now();
            drop(a.matmul(b.clone()));
            by_burn.push(begin.elapsed());
            let begin = Instant::now();
            multiply(&mut kept)?;
            into_kept.push(begin.elapsed());
            let begin = Instant::now();
            let mut new = vec![0f32; size * n];
            multiply(&mut new)?;
            drop(new);
            into_new.push(begin.elapsed());
        }
        let begin = Instant::now();
        drop(dense.matmul(b));
        let dense = begin.elapsed();
        println!(
            "{size} x {size} x {n}: Burn {:?}, crate {:?} ({:?} with a new vector), Burn's dense product {dense:?}",
            median(by_burn),
            median(into_kept),
            median(into_new)
        );
    }
    Ok(())
}
