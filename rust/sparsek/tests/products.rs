// SPDX-License-Identifier: Apache-2.0

//! Products of slices against sums in f64, on the CPU.

mod common;

use common::{Case, Number, Random, assert_close, context, erf};
use sparsek::half::{bf16, f16};
use sparsek::{Activation, Bias, Bsr, Buffer, MatMut, MatRef, Matrix, Pattern, PlanOptions, Product, Stream};

fn product_is_exact<T: Number, U: Number>(seed: u64, rows: usize, cols: usize, block: (usize, usize), n: usize) {
    let Some(context) = context() else { return };
    let case = Case::<T>::new(seed, rows, cols, block, 0.4);
    let pattern = Pattern::<T>::new(&context, &case.bsr()).unwrap();
    assert_eq!((pattern.rows(), pattern.cols(), pattern.block()), (rows, cols, block));
    assert_eq!(
        (pattern.blocks(), pattern.values_len()),
        (case.col_idx.len(), case.values.len())
    );
    let plan = pattern.plan_into::<U>(&PlanOptions::new(n)).unwrap();
    let b: Vec<T> = Random(seed + 1).vector(cols * n);
    let mut c = vec![U::of(f64::NAN); rows * n];
    let (dense, result) = (MatRef::new(&b, cols, n).unwrap(), MatMut::new(&mut c, rows, n).unwrap());
    plan.multiply(&case.values, dense, result).unwrap();
    for (at, got) in c.iter().enumerate() {
        let (row, col) = (at / n, at % n);
        let (exact, size) = case.product(&b, n, row, col);
        assert_close::<T, U>(*got, exact, size, cols, (row, col));
    }
}

#[test]
fn products_of_all_types() {
    for (rows, cols, block, n) in [
        (64, 96, (16, 16), 24),
        (50, 37, (8, 8), 7),
        (9, 11, (3, 2), 1),
        (20, 33, (1, 1), 5),
    ] {
        product_is_exact::<f32, f32>(1, rows, cols, block, n);
        product_is_exact::<f64, f64>(2, rows, cols, block, n);
        product_is_exact::<f16, f16>(3, rows, cols, block, n);
        product_is_exact::<bf16, bf16>(4, rows, cols, block, n);
        product_is_exact::<bf16, f32>(5, rows, cols, block, n);
        product_is_exact::<f32, bf16>(6, rows, cols, block, n);
    }
}

#[test]
fn the_epilogue_and_gaps_between_rows() {
    let Some(context) = context() else { return };
    let (rows, cols, n, gap) = (24, 40, 6, 3);
    let case = Case::<f32>::new(7, rows, cols, (8, 8), 0.5);
    let pattern = Pattern::<f32>::new(&context, &case.bsr()).unwrap();
    let mut random = Random(8);
    let (b, before): (Vec<f32>, Vec<f32>) = (random.vector(cols * n), random.vector(rows * (n + gap)));
    for (kind, len) in [(Bias::None, 0), (Bias::Row, rows), (Bias::Column, n)] {
        for activation in [Activation::None, Activation::Relu, Activation::Gelu, Activation::Silu] {
            let options = PlanOptions::new(n).bias(kind).activation(activation);
            let plan = pattern.plan(&options).unwrap();
            let (bias, mut c): (Vec<f32>, _) = (random.vector(len), before.clone());
            let dense = MatRef::new(&b, cols, n).unwrap();
            let result = MatMut::with_ld(&mut c, rows, n, n + gap).unwrap();
            let mut product = Product::new(&case.values, dense, result).alpha(1.5).beta(-0.5);
            if kind != Bias::None {
                product = product.bias(&bias);
            }
            plan.run(product).unwrap();
            for (at, got) in c.iter().enumerate() {
                let (row, col) = (at / (n + gap), at % (n + gap));
                if col >= n {
                    assert_eq!(*got, before[at], "between rows");
                    continue;
                }
                let (sum, size) = case.product(&b, n, row, col);
                let added = match kind {
                    Bias::None => 0.0,
                    Bias::Row => bias[row].value(),
                    Bias::Column => bias[col].value(),
                };
                let x = 1.5 * sum - 0.5 * before[at].value() + added;
                let exact = match activation {
                    Activation::None => x,
                    Activation::Relu => x.max(0.0),
                    Activation::Gelu => x / 2.0 * (1.0 + erf(x / 2f64.sqrt())),
                    Activation::Silu => x / (1.0 + (-x).exp()),
                };
                assert_close::<f32, f32>(*got, exact, 2.0 * (size + 1.0), cols, (row, col));
            }
        }
    }
}

#[test]
fn c_in_and_fewer_columns_than_planned() {
    let Some(context) = context() else { return };
    let case = Case::<f64>::new(9, 16, 16, (4, 4), 0.5);
    let plan = Pattern::new(&context, &case.bsr())
        .unwrap()
        .plan(&PlanOptions::new(8))
        .unwrap();
    for n in [8, 5, 1] {
        let mut random = Random(10);
        let (b, other): (Vec<f64>, Vec<f64>) = (random.vector(16 * n), random.vector(16 * n));
        let mut c = vec![f64::NAN; 16 * n];
        let (dense, result) = (MatRef::new(&b, 16, n).unwrap(), MatMut::new(&mut c, 16, n).unwrap());
        let product = Product::new(&case.values, dense, result)
            .beta(2.0)
            .c_in(MatRef::new(&other, 16, n).unwrap());
        plan.run(product).unwrap();
        for (at, got) in c.iter().enumerate() {
            let (sum, size) = case.product(&b, n, at / n, at % n);
            assert_close::<f64, f64>(*got, sum + 2.0 * other[at], size + 2.0, 16, (at / n, at % n));
        }
    }
}

#[test]
fn an_order_that_was_not_planned_is_an_error() {
    let Some(context) = context() else { return };
    let case = Case::<f64>::new(25, 8, 8, (4, 4), 0.5);
    let plan = Pattern::new(&context, &case.bsr())
        .unwrap()
        .plan(&PlanOptions::new(8))
        .unwrap();
    let (square, mut c) = ([0.0; 64], [0.0; 64]);
    let (b, result) = (MatRef::new(&square, 8, 8).unwrap(), MatMut::new(&mut c, 8, 8).unwrap());
    let error = plan
        .multiply(&case.values, b.transpose(), result)
        .unwrap_err()
        .to_string();
    assert!(error.contains("column-major B 8 x 8, C 8 x 8"), "{error}");
    let error = plan
        .multiply(&case.values, b, MatMut::new(&mut c, 8, 8).unwrap().transpose())
        .unwrap_err()
        .to_string();
    assert!(error.contains("B 8 x 8, column-major C 8 x 8"), "{error}");
}

#[test]
fn the_index_may_be_unsorted_and_name_blocks() {
    let Some(context) = context() else { return };
    let values = [1.0f32, 10.0, 100.0];
    let multiply = |bsr: &Bsr<'_, i64>| {
        let mut c = [0f32; 2];
        let plan = Pattern::new(&context, bsr).unwrap().plan(&PlanOptions::new(1)).unwrap();
        let b = [2.0, 3.0, 4.0];
        plan.multiply(
            &values,
            MatRef::new(&b, 3, 1).unwrap(),
            MatMut::new(&mut c, 2, 1).unwrap(),
        )
        .unwrap();
        c
    };
    assert_eq!(
        multiply(&Bsr::new(2, 3, (1, 1), &[0, 2, 3], &[2, 0, 1]).sort()),
        [4.0 + 20.0, 300.0]
    );
    let swapped = Bsr::new(2, 3, (1, 1), &[0, 2, 3], &[0, 2, 1]).block_idx(&[2, 1, 0]);
    assert_eq!(multiply(&swapped), [200.0 + 40.0, 3.0]);
}

#[test]
fn a_product_without_columns_is_none() {
    let Some(context) = context() else { return };
    let case = Case::<f32>::new(11, 8, 8, (4, 4), 0.5);
    let plan = Pattern::new(&context, &case.bsr())
        .unwrap()
        .plan(&PlanOptions::new(2))
        .unwrap();
    plan.multiply(
        &case.values,
        MatRef::new(&[], 8, 0).unwrap(),
        MatMut::new(&mut [], 8, 0).unwrap(),
    )
    .unwrap();
}

#[test]
fn buffers_and_streams() {
    let Some(context) = context() else { return };
    let case = Case::<f32>::new(13, 24, 16, (8, 8), 0.6);
    let plan = Pattern::new(&context, &case.bsr())
        .unwrap()
        .plan(&PlanOptions::new(4))
        .unwrap();
    let mut host: Vec<f32> = Random(14).vector(16 * 4);
    let (values, b) = (
        Buffer::of(&context, &case.values).unwrap(),
        Buffer::of(&context, &host).unwrap(),
    );
    let mut c = Buffer::<f32>::new(&context, 24 * 4).unwrap();
    assert_eq!(c.to_vec().unwrap(), [0.0; 24 * 4]);
    assert!(c.len() == 24 * 4 && !c.is_empty() && Buffer::<f64>::new(&context, 0).unwrap().is_empty());

    plan.multiply(&values, b.matrix(16, 4).unwrap(), c.matrix_mut(24, 4).unwrap())
        .unwrap();
    let first = c.to_vec().unwrap();
    let (exact, size) = case.product(&host, 4, 17, 2);
    assert_close::<f32, f32>(first[17 * 4 + 2], exact, size, 16, (17, 2));

    let stream = Stream::new(&context).unwrap();
    let mut again = Buffer::<f32>::new(&context, 24 * 4).unwrap();
    // SAFETY: the buffers live until the stream was waited for.
    let dense = unsafe { MatRef::from_raw(b.as_ptr(), 16, 4, 4) };
    let product = Product::new(&values, dense, again.matrix_mut(24, 4).unwrap());
    // SAFETY: as above.
    unsafe { plan.enqueue(product, &stream) }.unwrap();
    stream.synchronize().unwrap();
    assert!(stream.is_idle().unwrap());
    assert_eq!(again.to_vec().unwrap(), first);

    b.read(&mut host).unwrap();
    assert_eq!(host, b.to_vec().unwrap());
    for error in [
        c.write(&host).unwrap_err(),
        c.read(&mut host).unwrap_err(),
        c.matrix(24, 5).unwrap_err(),
    ] {
        assert!(error.to_string().contains("of a buffer of 96"), "{error}");
    }
    assert!(c.matrix_mut(25, 4).is_err());
    assert!(Buffer::<f64>::new(&context, usize::MAX / 4).is_err());
}

#[test]
fn a_matrix_of_a_dense_one() {
    let Some(context) = context() else { return };
    let case = Case::<f64>::new(15, 21, 18, (4, 4), 0.4);
    let dense = MatRef::new(&case.dense, 21, 18).unwrap();
    let mut matrix = Matrix::from_dense(&context, dense, case.block).unwrap();
    // A block below the last row may have no values of its own.
    assert!(matrix.pattern().blocks() <= case.col_idx.len());
    for n in [3, 9, 5, 2] {
        let b: Vec<f64> = Random(16).vector(18 * n);
        let mut c = vec![f64::NAN; 21 * n];
        matrix
            .multiply(MatRef::new(&b, 18, n).unwrap(), MatMut::new(&mut c, 21, n).unwrap())
            .unwrap();
        for (at, got) in c.iter().enumerate() {
            let (exact, size) = case.product(&b, n, at / n, at % n);
            assert_close::<f64, f64>(*got, exact, size, 18, (at / n, at % n));
        }
    }
    let turned: Vec<f64> = (0..18 * 21).map(|at| case.dense[at % 21 * 18 + at / 21]).collect();
    let turned = MatRef::new(&turned, 18, 21).unwrap().transpose();
    let again = Matrix::from_dense(&context, turned, case.block).unwrap();
    for matrix in [&matrix, &again] {
        let (b, mut c) = ([1.0; 18], [f64::NAN; 21]);
        matrix
            .multiply(MatRef::new(&b, 18, 1).unwrap(), MatMut::new(&mut c, 21, 1).unwrap())
            .unwrap();
        let (exact, size) = case.product(&b, 1, 20, 0);
        assert_close::<f64, f64>(c[20], exact, size, 18, (20, 0));
    }
    let zeros = vec![0.0; matrix.pattern().values_len()];
    matrix.set_values(&zeros).unwrap();
    let (b, mut c) = ([1.0; 18], [f64::NAN; 21]);
    matrix
        .multiply(MatRef::new(&b, 18, 1).unwrap(), MatMut::new(&mut c, 21, 1).unwrap())
        .unwrap();
    assert_eq!(c, [0.0; 21]);
    assert!(
        matrix
            .set_values(&zeros[1..])
            .unwrap_err()
            .to_string()
            .contains("values in place of")
    );
    assert!(
        Matrix::of_pattern(matrix.pattern(), vec![0.0])
            .unwrap_err()
            .to_string()
            .contains("1 values are not")
    );
    for (block, says) in [
        ((0, 4), "no elements"),
        ((usize::MAX, 2), "more than memory"),
        ((1 << 31, 1 << 31), "more than memory"),
    ] {
        let error = Matrix::from_dense(&context, dense, block).unwrap_err();
        assert!(
            matches!(&error, sparsek::Error::Extent(text) if text.contains(says)),
            "{error}"
        );
    }
}
