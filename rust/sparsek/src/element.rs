// SPDX-License-Identifier: Apache-2.0

use half::{bf16, f16};
use sparsek_sys as sys;

mod sealed {
    pub trait Sealed {}
}

/// A type of the elements of A, B and C: `f32`, `f64`, `half::f16` and `half::bf16`.
pub trait Element: sealed::Sealed + Copy + Default + PartialEq + Send + Sync + 'static {
    /// The type that the library sums products of two of these in, and of what is a sum: `f64` for `f64`, else `f32`.
    type Sum: Element;
    #[doc(hidden)]
    const DTYPE: sys::sparsek_dtype;
    #[doc(hidden)]
    fn from_f32(value: f32) -> Self;
}

/// A type of indices: `i16`, `i32` and `i64`.
pub trait Index: sealed::Sealed + Copy + Send + Sync + 'static {
    #[doc(hidden)]
    const TYPE: sys::sparsek_index_type;
    #[doc(hidden)]
    fn from_usize(value: usize) -> Option<Self>;
}

macro_rules! elements {
    ($($type:ty: $dtype:ident, $sum:ty, $from:path);*) => {$(
        impl sealed::Sealed for $type {}
        impl Element for $type {
            type Sum = $sum;
            const DTYPE: sys::sparsek_dtype = sys::$dtype;
            fn from_f32(value: f32) -> Self {
                $from(value)
            }
        }
    )*};
}
elements!(
    f32: SPARSEK_FP32, f32, f32::from;
    f64: SPARSEK_FP64, f64, f64::from;
    f16: SPARSEK_FP16, f32, f16::from_f32;
    bf16: SPARSEK_BF16, f32, bf16::from_f32
);

macro_rules! indices {
    ($($type:ty: $index:ident),*) => {$(
        impl sealed::Sealed for $type {}
        impl Index for $type {
            const TYPE: sys::sparsek_index_type = sys::$index;
            fn from_usize(value: usize) -> Option<Self> {
                value.try_into().ok()
            }
        }
    )*};
}
indices!(i16: SPARSEK_INT16, i32: SPARSEK_INT32, i64: SPARSEK_INT64);
