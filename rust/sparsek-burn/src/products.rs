// SPDX-License-Identifier: Apache-2.0

//! Products in the memory of a device. Dense matrices are row-major without gaps, values are (blocks, bm, bk). They panic
//! where the library fails, as Burn's operations do.

use std::time::Duration;

use sparsek::{Error, MatMut, MatRef, Product, VecRef};

use crate::form::Kind;
use crate::pattern::{Number, Place};
use crate::{BsrForm, BsrPattern, BsrSide};

/// The product of a form, for operands in this place. Those on a GPU are at multiples of 16 bytes where `aligned`.
pub(crate) fn multiply<T: Number>(
    (place, aligned): (Place, bool),
    (pattern, form, tuning): (&BsrPattern, BsrForm, Duration),
    values: VecRef<'_, T>,
    dense: MatRef<'_, T>,
    result: MatMut<'_, T>,
) {
    let (kind, n) = (Kind::Product(form), form.side().n([dense.rows(), dense.cols()]));
    if n == 0 {
        return;
    }
    let run = || {
        pattern
            .plan((place, aligned), kind, n, tuning)?
            .multiply(values, dense, result)
    };
    run().unwrap_or_else(|error: Error| panic!("{pattern:?}, {kind:?} with n = {n}: {error}"));
}

/// The blocks of a dense product where A has blocks: of rows columns^T, or for `Right` of rows^T columns. `rows` has A's rows
/// and `columns` A's columns.
pub(crate) fn sample<T: Number>(
    (place, aligned): (Place, bool),
    (pattern, side): (&BsrPattern, BsrSide),
    rows: MatRef<'_, T>,
    columns: MatRef<'_, T>,
    values: MatMut<'_, T>,
) {
    let (kind, n) = (Kind::Sample(side), side.n([rows.rows(), rows.cols()]));
    let (x, b) = match side {
        BsrSide::Left => (rows, columns.transpose()),
        BsrSide::Right => (rows.transpose(), columns),
    };
    let run = || {
        pattern
            .plan((place, aligned), kind, n, Duration::ZERO)?
            .run(Product::sdd(x, b, values))
    };
    run().unwrap_or_else(|error: Error| panic!("{pattern:?}, {kind:?} with n = {n}: {error}"));
}

/// [`multiply`] of slices.
#[expect(
    unsafe_code,
    reason = "the library writes every element of a result that has none yet"
)]
pub(crate) fn multiply_slices<T: Number>(
    what: (&BsrPattern, BsrForm, Duration),
    values: &[T],
    dense: (&[T], [usize; 2]),
) -> Vec<T> {
    let [rows, cols] = what.1.result(what.0.shape(), what.1.side().n(dense.1));
    // Zeros would be written, and then overwritten by the product.
    let mut result = Vec::<T>::with_capacity(rows * cols);
    // SAFETY: the vector has room for so many elements, and nothing else uses it until the product has ended.
    let to = unsafe { MatMut::from_raw(result.as_mut_ptr(), rows, cols, cols) };
    multiply((Place::Host, true), what, values.into(), matrix(dense), to);
    // SAFETY: a product without an addend writes every element of its result, or `multiply` has panicked.
    unsafe { result.set_len(rows * cols) };
    result
}

/// [`sample`] of slices.
pub(crate) fn sample_slices<T: Number>(
    what: (&BsrPattern, BsrSide),
    rows: (&[T], [usize; 2]),
    columns: (&[T], [usize; 2]),
) -> Vec<T> {
    let (blocks, [bm, bk]) = (what.0.blocks(), what.0.block());
    let mut values = vec![T::default(); blocks * bm * bk];
    if what.1.n(rows.1) > 0 && blocks > 0 {
        let to = MatMut::new(&mut values, blocks * bm, bk).expect("it has so many elements");
        sample((Place::Host, true), what, matrix(rows), matrix(columns), to);
    }
    values
}

fn matrix<T>((elements, [rows, cols]): (&[T], [usize; 2])) -> MatRef<'_, T> {
    MatRef::new(elements, rows, cols).expect("a tensor has as many elements as its shape says")
}

/// Buffers of the library stand in for tensors of Burn's backend for CUDA, which have addresses of the same kind.
#[cfg(test)]
mod tests {
    use sparsek::half::bf16;
    use sparsek::{Backend, Buffer, Context, ContextOptions, Status};

    use super::*;
    use crate::BsrTensor;
    use burn::tensor::{DType, Device, Distribution, Tensor};

    fn gpu() -> Option<Context> {
        let options = ContextOptions {
            backend: Backend::Cuda,
            ..Default::default()
        };
        let needed = std::env::var_os("SPARSEK_TEST_GPU").is_some();
        match Context::new(&options) {
            Ok(context) => Some(context),
            Err(error) if !needed && error.status().is_none_or(|status| status == Status::NoDevice) => {
                eprintln!("skipped: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn random(shape: [usize; 2], dtype: DType) -> Tensor<2> {
        Tensor::<2>::random(shape, Distribution::Uniform(-1.0, 1.0), &Device::flex()).cast(dtype)
    }

    /// Every form and both gradients, against the same on the CPU.
    fn as_on_the_cpu<T: Number + burn::tensor::Element>(tolerance: f64) {
        let Some(context) = gpu() else { return };
        let place = (Place::Cuda(context.info().device), true);
        let a = BsrTensor::from_dense(random([128, 96], T::dtype()), [16, 16], 0.4);
        let (pattern, values) = (a.pattern(), slice::<T, 3>(a.values().clone()));
        let there = Buffer::of(&context, &values).unwrap();
        for form in [
            BsrForm::Left,
            BsrForm::LeftTransposed,
            BsrForm::Right,
            BsrForm::RightTransposed,
        ] {
            for n in [32, 7] {
                let what = (pattern, form, Duration::ZERO);
                let [[r, c], [m, k]] = [form.other(), form].map(|form| form.result(pattern.shape(), n));
                let place = (place.0, n == 32);
                let dense = slice::<T, 2>(random([r, c], T::dtype()));
                let mut result = Buffer::<T>::new(&context, m * k).unwrap();
                let from = Buffer::of(&context, &dense).unwrap();
                multiply(
                    place,
                    what,
                    (&there).into(),
                    from.matrix(r, c).unwrap(),
                    result.matrix_mut(m, k).unwrap(),
                );
                let want = multiply_slices(what, &values, (&dense, [r, c]));
                close(&result.to_vec().unwrap(), &want, tolerance);

                let (rows, columns) = if form.reads_rows() {
                    ([r, c], [m, k])
                } else {
                    ([m, k], [r, c])
                };
                let (x, y) = (
                    slice::<T, 2>(random(rows, T::dtype())),
                    slice::<T, 2>(random(columns, T::dtype())),
                );
                let on_device = [Buffer::of(&context, &x).unwrap(), Buffer::of(&context, &y).unwrap()];
                let mut blocks = Buffer::<T>::new(&context, values.len()).unwrap();
                let of_rows = on_device[0].matrix(rows[0], rows[1]).unwrap();
                let of_columns = on_device[1].matrix(columns[0], columns[1]).unwrap();
                let to = blocks.matrix_mut(values.len() / 16, 16).unwrap();
                sample(place, (pattern, form.side()), of_rows, of_columns, to);
                let want = sample_slices((pattern, form.side()), (&x, rows), (&y, columns));
                close(&blocks.to_vec().unwrap(), &want, tolerance);
            }
        }
    }

    fn slice<T: burn::tensor::Element, const D: usize>(tensor: Tensor<D>) -> Vec<T> {
        tensor.into_data().try_to_vec().unwrap()
    }

    fn close<T: burn::tensor::Element + burn::tensor::ElementConversion>(got: &[T], want: &[T], tolerance: f64) {
        assert_eq!(got.len(), want.len());
        for (at, (got, want)) in got.iter().zip(want).enumerate() {
            let (got, want) = (got.elem::<f64>(), want.elem::<f64>());
            assert!(
                (got - want).abs() <= tolerance * (1.0 + want.abs()),
                "{at}: {got} in place of {want}"
            );
        }
    }

    #[test]
    fn products_on_a_gpu() {
        as_on_the_cpu::<f32>(1e-5);
        as_on_the_cpu::<f64>(1e-13);
        as_on_the_cpu::<bf16>(2e-2);
    }
}
