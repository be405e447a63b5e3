// SPDX-License-Identifier: Apache-2.0

//! What a GPU alone has: streams, device memory, plans that refuse operands, and handles that are dropped while products
//! run. Skipped where there is no GPU that is served.

mod common;

use std::thread;

use common::{Case, Number, Random, assert_close, gpu};
use sparsek::half::bf16;
use sparsek::{Backend, Buffer, Error, MatMut, MatRef, Matrix, Pattern, PlanOptions, Product, Stream};

fn assert_product<T: Number>(case: &Case<T>, b: &[T], c: &[T], n: usize) {
    for (at, got) in c.iter().enumerate() {
        let (exact, size) = case.product(b, n, at / n, at % n);
        assert_close::<T, T>(*got, exact, size, case.cols, (at / n, at % n));
    }
}

fn counts_of_columns<T: Number>(seed: u64) {
    let Some(context) = gpu() else { return };
    let case = Case::<T>::new(seed, 128, 96, (16, 16), 0.4);
    let matrix = Matrix::new(&context, &case.bsr(), case.values.clone()).unwrap();
    // Fewer columns, which are no multiple of 16 bytes, and some that are, in both orders.
    for n in [40, 33, 32, 21, 24, 1, 64, 63] {
        let b: Vec<T> = Random(seed + n as u64).vector(96 * n);
        let (from, mut to) = (
            Buffer::of(&context, &b).unwrap(),
            Buffer::new(&context, 128 * n).unwrap(),
        );
        matrix
            .multiply(from.matrix(96, n).unwrap(), to.matrix_mut(128, n).unwrap())
            .unwrap();
        assert_product(&case, &b, &to.to_vec().unwrap(), n);
    }
}

#[test]
fn a_matrix_takes_any_count_of_columns() {
    counts_of_columns::<f32>(1);
    counts_of_columns::<bf16>(2);
}

#[test]
fn a_stream_and_gaps_between_rows() {
    let Some(context) = gpu() else { return };
    let (n, ld) = (24, 29);
    let case = Case::<f32>::new(3, 64, 64, (8, 8), 0.4);
    let options = PlanOptions::new(n).ldb(ld).alignment(4);
    let plan = Pattern::new(&context, &case.bsr()).unwrap().plan(&options).unwrap();
    let b: Vec<f32> = Random(4).vector(64 * n);
    let mut wide = vec![f32::NAN; 64 * ld];
    for (wide, row) in wide.chunks_exact_mut(ld).zip(b.chunks_exact(n)) {
        wide[..n].copy_from_slice(row);
    }
    let (values, from) = (
        Buffer::of(&context, &case.values).unwrap(),
        Buffer::of(&context, &wide).unwrap(),
    );
    let (mut to, stream) = (Buffer::new(&context, 64 * n).unwrap(), Stream::new(&context).unwrap());
    // SAFETY: the buffers live until the stream was waited for.
    let dense = unsafe { MatRef::from_raw(from.as_ptr(), 64, n, ld) };
    let product = Product::new(&values, dense, to.matrix_mut(64, n).unwrap());
    // SAFETY: as above.
    unsafe { plan.enqueue(product, &stream) }.unwrap();
    stream.synchronize().unwrap();
    assert!(stream.is_idle().unwrap());
    assert_product(&case, &b, &to.to_vec().unwrap(), n);
}

#[test]
fn host_memory_is_refused() {
    let Some(context) = gpu() else { return };
    assert_eq!(context.info().backend, Backend::Cuda);
    let case = Case::<f32>::new(5, 16, 16, (8, 8), 1.0);
    let matrix = Matrix::new(&context, &case.bsr(), case.values.clone()).unwrap();
    let (b, mut c) = ([1.0; 16], [0.0; 16]);
    let error = matrix
        .multiply(MatRef::new(&b, 16, 1).unwrap(), MatMut::new(&mut c, 16, 1).unwrap())
        .unwrap_err();
    assert!(matches!(error, Error::Memory(_)), "{error}");
}

#[test]
fn rows_that_are_not_aligned_have_a_plan_of_their_own() {
    let Some(context) = gpu() else { return };
    let (n, case) = (64, Case::<bf16>::new(6, 128, 128, (64, 64), 0.6));
    let pattern = Pattern::new(&context, &case.bsr()).unwrap();
    let b: Vec<bf16> = Random(7).vector(128 * (n + 1));
    let (values, from) = (
        Buffer::of(&context, &case.values).unwrap(),
        Buffer::of(&context, &b).unwrap(),
    );
    let mut to = Buffer::new(&context, 128 * n).unwrap();
    let plan = pattern.plan(&PlanOptions::new(n).alignment(2)).unwrap();
    for (skip, ld) in [(0, n), (1, n), (0, n + 1), (3, n)] {
        // SAFETY: the buffer lives until the product has ended, and has so many elements.
        let dense = unsafe { MatRef::from_raw(from.as_ptr().add(skip), 128, n, ld) };
        plan.multiply(&values, dense, to.matrix_mut(128, n).unwrap()).unwrap();
        let rows: Vec<bf16> = (0..128 * n).map(|at| b[skip + at / n * ld + at % n]).collect();
        assert_product(&case, &rows, &to.to_vec().unwrap(), n);
    }
}

#[test]
fn one_plan_serves_threads_with_streams_of_their_own() {
    let Some(context) = gpu() else { return };
    let case = Case::<f32>::new(8, 256, 256, (32, 32), 0.3);
    let pattern = Pattern::new(&context, &case.bsr()).unwrap();
    let plan = pattern.plan(&PlanOptions::new(16).alignment(4)).unwrap();
    thread::scope(|scope| {
        for thread in 0..8u64 {
            let (plan, case, context) = (&plan, &case, &context);
            scope.spawn(move || {
                let stream = Stream::new(context).unwrap();
                let values: Vec<f32> = case.values.iter().map(|value| value * (thread + 1) as f32).collect();
                let values = Buffer::of(context, &values).unwrap();
                for round in 0..20u64 {
                    let n = 1 + (thread + round) as usize % 16;
                    let b: Vec<f32> = Random(thread * 1000 + round).vector(256 * n);
                    let from = Buffer::of(context, &b).unwrap();
                    let mut to = Buffer::new(context, 256 * n).unwrap();
                    let product = Product::new(&values, from.matrix(256, n).unwrap(), to.matrix_mut(256, n).unwrap());
                    // SAFETY: the buffers live until the stream was waited for.
                    unsafe { plan.enqueue(product, &stream) }.unwrap();
                    stream.synchronize().unwrap();
                    let factor = (thread + 1) as f64;
                    for (at, got) in to.to_vec().unwrap().into_iter().enumerate() {
                        let (exact, size) = case.product(&b, n, at / n, at % n);
                        assert_close::<f32, f32>(got, factor * exact, factor * size, 258, (at / n, at % n));
                    }
                }
            });
        }
    });
}

/// The library keeps what a product needs that still runs.
#[test]
fn handles_may_be_dropped_while_a_product_runs() {
    let Some(context) = gpu() else { return };
    let n = 512;
    let case = Case::<f32>::new(9, 1024, 1024, (32, 32), 0.2);
    let b: Vec<f32> = Random(10).vector(1024 * n);
    let (values, from) = (
        Buffer::of(&context, &case.values).unwrap(),
        Buffer::of(&context, &b).unwrap(),
    );
    let (mut to, stream) = (
        Buffer::<f32>::new(&context, 1024 * n).unwrap(),
        Stream::new(&context).unwrap(),
    );
    for round in 0..10 {
        let pattern = Pattern::new(&context, &case.bsr()).unwrap();
        let plan = pattern.plan(&PlanOptions::new(n)).unwrap();
        let product = Product::new(&values, from.matrix(1024, n).unwrap(), to.matrix_mut(1024, n).unwrap());
        // SAFETY: the buffers live until the stream was waited for.
        unsafe { plan.enqueue(product, &stream) }.unwrap();
        if round % 2 == 0 {
            drop(plan);
            drop(pattern);
        } else {
            drop(pattern);
            drop(plan);
        }
    }
    drop(context);
    stream.synchronize().unwrap();
    drop(stream);
    let result = to.to_vec().unwrap();
    for at in (0..1024 * n).step_by(1013) {
        let (exact, size) = case.product(&b, n, at / n, at % n);
        assert_close::<f32, f32>(result[at], exact, size, 1024, (at / n, at % n));
    }
}
