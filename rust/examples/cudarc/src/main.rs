// SPDX-License-Identifier: Apache-2.0

//! C = A B in memory and in a stream of crate `cudarc`: `cargo run --release -p sparsek-cudarc-example`, on a machine with a
//! Hopper GPU. cudarc opens the driver at run time, so it builds without CUDA.

use std::error::Error;
use std::ffi::c_void;

use cudarc::driver::{CudaContext, DevicePtr, DevicePtrMut};
use sparsek::{Backend, Bsr, Context, ContextOptions, MatMut, MatRef, Pattern, PlanOptions, Product, Stream, VecRef};

const DEVICE: usize = 0;
// Blocks of A down, across, and their side; columns of B.
const DOWN: usize = 24;
const ACROSS: usize = 16;
const SIDE: usize = 32;
const N: usize = 48;

fn main() -> Result<(), Box<dyn Error>> {
    // First, since this is an error where there is no driver, and cudarc panics.
    let context = Context::new(&ContextOptions {
        backend: Backend::Cuda,
        device: DEVICE.try_into()?,
        ..Default::default()
    })?;
    println!("{}", context.info().reason);
    let stream = CudaContext::new(DEVICE)?.new_stream()?;

    // A block at every third place.
    let places: Vec<usize> = (0..DOWN * ACROSS).filter(|place| place % 3 == 1).collect();
    let row_ptr: Vec<i32> = (0..=DOWN)
        .map(|row| places.partition_point(|place| *place < row * ACROSS) as i32)
        .collect();
    let col_idx: Vec<i32> = places.iter().map(|place| (place % ACROSS) as i32).collect();
    let (rows, cols) = (DOWN * SIDE, ACROSS * SIDE);
    let pattern = Pattern::<f32>::new(&context, &Bsr::new(rows, cols, (SIDE, SIDE), &row_ptr, &col_idx))?;
    let plan = pattern.plan(&PlanOptions::new(N))?;

    let (values, b) = (noise(pattern.values_len(), 1), noise(cols * N, 2));
    let (values_there, b_there) = (stream.clone_htod(&values)?, stream.clone_htod(&b)?);
    let mut c_there = stream.alloc_zeros::<f32>(rows * N)?;
    {
        // The guards say to cudarc that its stream uses the memory: they live until the product is in the stream.
        let (values_at, _values) = values_there.device_ptr(&stream);
        let (b_at, _b) = b_there.device_ptr(&stream);
        let (c_at, _c) = c_there.device_ptr_mut(&stream);
        // SAFETY: the memory has these extents, and lives until the stream was waited for; the stream is one of the
        // context's device, and lives as long.
        unsafe {
            let product = Product::new(
                VecRef::from_raw(address(values_at).cast_const(), values.len()),
                MatRef::from_raw(address(b_at).cast_const(), cols, N, N),
                MatMut::from_raw(address(c_at), rows, N, N),
            );
            plan.enqueue(
                product,
                &Stream::from_raw(&context, stream.cu_stream().cast::<c_void>()),
            )?;
        }
    }
    let c = stream.clone_dtoh(&c_there)?;
    stream.synchronize()?;

    let mut exact = vec![0f64; rows * N];
    for (block, place) in places.iter().enumerate() {
        for (r, k) in (0..SIDE).flat_map(|r| (0..SIDE).map(move |k| (r, k))) {
            let (row, col) = (place / ACROSS * SIDE + r, place % ACROSS * SIDE + k);
            let value = f64::from(values[(block * SIDE + r) * SIDE + k]);
            for n in 0..N {
                exact[row * N + n] += value * f64::from(b[col * N + n]);
            }
        }
    }
    let errors = c.iter().zip(&exact).map(|(got, want)| (f64::from(*got) - want).abs());
    let worst = errors.fold(0.0, |worst: f64, error| if error <= worst { worst } else { error });
    println!(
        "{rows} x {cols} times {cols} x {N} by {}: off by at most {worst:e}",
        plan.info()?.kernel
    );
    // The sums have at most 6 * 32 products below 1.
    if worst < 192.0 * 192.0 * f64::from(f32::EPSILON) {
        Ok(())
    } else {
        Err("C is wrong".into())
    }
}

fn address(pointer: cudarc::driver::sys::CUdeviceptr) -> *mut f32 {
    std::ptr::with_exposed_provenance_mut(pointer as usize)
}

/// In -1..1, the same each time.
fn noise(len: usize, seed: u32) -> Vec<f32> {
    let of = |at: u32| at.wrapping_add(seed).wrapping_mul(0x9e37_79b9) as i32 as f32 / 2147483648.0;
    (0..len as u32).map(of).collect()
}
