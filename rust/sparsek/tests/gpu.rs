// SPDX-License-Identifier: Apache-2.0

//! Products on a GPU, where there is one that is served.

mod common;

use common::{Case, Number, Random, assert_close};
use sparsek::half::bf16;
use sparsek::{
    Backend, Buffer, Context, ContextOptions, Error, MatMut, MatRef, Matrix, Pattern, PlanOptions, Product, Status,
    Stream,
};

fn gpu() -> Option<Context> {
    let options = ContextOptions {
        backend: Backend::Cuda,
        ..Default::default()
    };
    match Context::new(&options) {
        Ok(context) => Some(context),
        Err(error) if error.status() == Some(Status::NoDevice) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(Error::Library(text)) if std::env::var_os("SPARSEK_LIBRARY").is_none() => {
            eprintln!("skipped: {text}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

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
    assert_product(&case, &b, &to.to_vec().unwrap(), n);
}

#[test]
fn host_memory_is_refused() {
    let Some(context) = gpu() else { return };
    let case = Case::<f32>::new(5, 16, 16, (8, 8), 1.0);
    let matrix = Matrix::new(&context, &case.bsr(), case.values.clone()).unwrap();
    let (b, mut c) = ([1.0; 16], [0.0; 16]);
    let error = matrix
        .multiply(MatRef::new(&b, 16, 1).unwrap(), MatMut::new(&mut c, 16, 1).unwrap())
        .unwrap_err();
    assert!(matches!(error, Error::Memory(_)), "{error}");
}
