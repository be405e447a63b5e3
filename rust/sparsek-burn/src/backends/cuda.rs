// SPDX-License-Identifier: Apache-2.0

//! Burn's backend for CUDA. It hides its streams, so each product waits twice: for what its operands are computed by, and
//! for its result.
#![expect(unsafe_code, reason = "the library is given addresses of device memory")]

use std::time::Duration;

use burn::tensor::{DType, Shape, read_sync};
use burn_cubecl::cubecl::cuda::CudaRuntime;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{CubeBackend, CubeDevice};
use cubecl_runtime::runtime::Runtime;
use sparsek::half::{bf16, f16};
use sparsek::{MatMut, MatRef, VecRef};

use crate::pattern::Place;
use crate::{BsrForm, BsrOps, BsrPattern, BsrSide, products};

type Server = <CudaRuntime as Runtime>::Server;

/// Two operands and a result, whose shapes are of rows and columns.
struct Operands {
    tensors: [CubeTensor; 3],
    place: Place,
}

impl Operands {
    /// A result of this shape for two operands, which are made contiguous.
    fn new(x: CubeTensor, y: CubeTensor, shape: Shape) -> Operands {
        assert_eq!(
            x.dtype, y.dtype,
            "the operands of a product with a block-sparse matrix are of one type"
        );
        let CubeDevice::Cuda(device) = &x.device else {
            panic!(
                "products with a block-sparse matrix are on CUDA's devices, not on {:?}",
                x.device
            );
        };
        let place = Place::Cuda(device.index.try_into().expect("a number of a device is small"));
        let (x, y) = (into_contiguous(x), into_contiguous(y));
        let result = empty_device_contiguous_dtype(x.client.clone(), x.device.clone(), shape, x.dtype);
        Operands {
            tensors: [x, y, result],
            place,
        }
    }

    /// Calls `run` with the addresses of all three and whether all are multiples of 16, when the device has computed the
    /// operands, and returns the result, which `run` has waited for.
    fn run(self, run: impl FnOnce([u64; 3], (Place, bool))) -> CubeTensor {
        let resources = self.tensors.each_ref().map(|tensor| {
            let resource = tensor.client.get_resource::<Server>(tensor.handle.clone());
            resource.unwrap_or_else(|error| panic!("the memory of a tensor: {error:?}"))
        });
        let [x, _, result] = &self.tensors;
        read_sync(x.client.sync()).unwrap_or_else(|error| panic!("the operands of a product: {error:?}"));
        let addresses = resources.each_ref().map(|resource| resource.resource().ptr);
        let aligned = addresses.iter().all(|address| address.is_multiple_of(16));
        run(addresses, (self.place, aligned));
        result.clone()
    }
}

fn dims(tensor: &CubeTensor) -> [usize; 2] {
    tensor.meta.shape().dims()
}

/// # Safety
///
/// There are so many elements at this address of device memory, as long as the matrix is used.
unsafe fn matrix<'a, T>(address: u64, [rows, cols]: [usize; 2]) -> MatRef<'a, T> {
    // SAFETY: of the caller.
    unsafe { MatRef::from_raw(std::ptr::with_exposed_provenance(address as usize), rows, cols, cols) }
}

/// # Safety
///
/// As of [`matrix`], and nothing else uses them.
unsafe fn matrix_mut<'a, T>(address: u64, [rows, cols]: [usize; 2]) -> MatMut<'a, T> {
    // SAFETY: of the caller.
    unsafe {
        MatMut::from_raw(
            std::ptr::with_exposed_provenance_mut(address as usize),
            rows,
            cols,
            cols,
        )
    }
}

/// Calls a function with the type of the elements.
macro_rules! for_type {
    ($dtype:expr, $call:ident::<_>($($argument:expr),*)) => {
        match $dtype {
            DType::F32 => $call::<f32>($($argument),*),
            DType::F16 => $call::<f16>($($argument),*),
            DType::BF16 => $call::<bf16>($($argument),*),
            other => panic!("products with a block-sparse matrix on CUDA are of F32, F16 or BF16, not {other:?}"),
        }
    };
}

impl BsrOps for CubeBackend {
    fn bsr_multiply(
        values: CubeTensor,
        dense: CubeTensor,
        pattern: BsrPattern,
        form: BsrForm,
        tuning: Duration,
    ) -> CubeTensor {
        fn multiply<T: crate::pattern::Number>(
            what: (&BsrPattern, BsrForm, Duration),
            [values, dense, result]: [u64; 3],
            place: (Place, bool),
            (of_dense, of_result): ([usize; 2], [usize; 2]),
        ) {
            let (pattern, [bm, bk]) = (what.0, what.0.block());
            let len = pattern.blocks() * bm * bk;
            // SAFETY: the tensors have these shapes and live; the result is this operation's alone.
            let (values, dense, result) = unsafe {
                let values = VecRef::from_raw(std::ptr::with_exposed_provenance::<T>(values as usize), len);
                (values, matrix(dense, of_dense), matrix_mut(result, of_result))
            };
            products::multiply(place, what, values, dense, result);
        }

        let (dtype, of_dense) = (values.dtype, dims(&dense));
        let of_result = form.result(pattern.shape(), form.side().n(of_dense));
        let operands = Operands::new(values, dense, Shape::from(of_result));
        let (what, shapes) = ((&pattern, form, tuning), (of_dense, of_result));
        operands.run(|addresses, place| for_type!(dtype, multiply::<_>(what, addresses, place, shapes)))
    }

    fn bsr_sample(rows: CubeTensor, columns: CubeTensor, pattern: BsrPattern, side: BsrSide) -> CubeTensor {
        fn sample<T: crate::pattern::Number>(
            what: (&BsrPattern, BsrSide),
            [rows, columns, values]: [u64; 3],
            place: (Place, bool),
            (of_rows, of_columns): ([usize; 2], [usize; 2]),
        ) {
            let (blocks, [bm, bk]) = (what.0.blocks(), what.0.block());
            // SAFETY: the tensors have these shapes and live; the result is this operation's alone.
            let (rows, columns, values) = unsafe {
                let values = matrix_mut::<T>(values, [blocks * bm, bk]);
                (matrix(rows, of_rows), matrix(columns, of_columns), values)
            };
            products::sample(place, what, rows, columns, values);
        }

        let (dtype, shapes) = (rows.dtype, (dims(&rows), dims(&columns)));
        let ([bm, bk], blocks) = (pattern.block(), pattern.blocks());
        if side.n(shapes.0) == 0 || blocks == 0 {
            let (client, device) = (rows.client.clone(), rows.device.clone());
            return burn_cubecl::ops::numeric::zeros_client(client, device, Shape::from([blocks, bm, bk]), dtype);
        }
        let operands = Operands::new(rows, columns, Shape::from([blocks, bm, bk]));
        let what = (&pattern, side);
        operands.run(|addresses, place| for_type!(dtype, sample::<_>(what, addresses, place, shapes)))
    }
}
