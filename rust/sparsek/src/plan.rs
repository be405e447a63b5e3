// SPDX-License-Identifier: Apache-2.0

use std::ffi::CString;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use sparsek_sys as sys;

use crate::context::text;
use crate::operand::Place;
use crate::pattern::extent;
use crate::plan_options::{Activation, Bias, Op, PlanOptions};
use crate::product::Product;
use crate::{Element, Error, MatMut, MatRef, Order, Pattern, Result, Stream, VecRef};

/// What a plan is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlanInfo {
    /// The kernel.
    pub kernel: String,
    /// Why this kernel.
    pub reason: String,
    /// Device memory that the plan holds, and the workspace of one product, in bytes.
    pub workspace_bytes: i64,
    /// The unit roundoff of a step of its sums, which the error bound in `sparsek.h` is made of.
    pub unit_roundoff: f64,
    /// How far the product of two elements may be off, as a share of it, before it is summed up.
    pub product_roundoff: f64,
    /// Seconds of a product, by the cost model; 0 where it was not used.
    pub predicted_seconds: f64,
    /// Seconds of a product when this one, or a similar one, was measured; 0 where none was.
    pub measured_seconds: f64,
    /// What is wrong with the file of measurements, or "".
    pub warning: String,
}

/// How products by a pattern are computed: C = act(alpha A B + beta C + bias), or another [`Op`], with A and X of type T, C
/// and the bias of type U, and B of type V.
#[derive(Debug)]
pub struct Plan<T: Element, U: Element = T, V: Element = T> {
    pattern: Pattern<T>,
    handle: NonNull<sys::sparsek_plan>,
    n: usize,
    op: Op,
    /// Of X, B and C.
    orders: [Order; 3],
    bias: Bias,
    place: Place,
    dense: PhantomData<fn(U, V)>,
}

// SAFETY: the library's handles may be used from several threads at once.
unsafe impl<T: Element, U: Element, V: Element> Send for Plan<T, U, V> {}
// SAFETY: as above.
unsafe impl<T: Element, U: Element, V: Element> Sync for Plan<T, U, V> {}

impl<T: Element, U: Element, V: Element> Drop for Plan<T, U, V> {
    fn drop(&mut self) {
        // SAFETY: the handle is destroyed once; its memory outlives products that were enqueued.
        unsafe { (self.pattern.context().api().plan_destroy)(self.handle.as_ptr()) }
    }
}

impl<T: Element, U: Element, V: Element> Plan<T, U, V> {
    pub(crate) fn new(pattern: &Pattern<T>, options: &PlanOptions) -> Result<Plan<T, U, V>> {
        let context = pattern.context();
        let kernel = match &options.kernel {
            None => None,
            Some(name) => {
                Some(CString::new(name.as_str()).map_err(|_| Error::Extent(format!("{name:?} is no kernel's name")))?)
            }
        };
        let alignment = match options.alignment {
            0 if context.is_cpu() => size_of::<V>().min(size_of::<U>()),
            0 => 16,
            bytes => bytes,
        };
        let asked = sys::sparsek_plan_options {
            n: extent(options.n)?,
            op: options.op.code(),
            order_x: code(options.order_x),
            order_b: code(options.order_b),
            order_c: code(options.order_c),
            ldx: extent(options.ldx)?,
            ldb: extent(options.ldb)?,
            ldc: extent(options.ldc)?,
            alignment: alignment
                .try_into()
                .map_err(|_| Error::Extent(format!("an alignment of {alignment} bytes is larger than any")))?,
            kernel: kernel.as_ref().map_or(ptr::null(), |name| name.as_ptr()),
            dtype_c: U::DTYPE,
            dtype_b: V::DTYPE,
            bias: match options.bias {
                Bias::None => sys::SPARSEK_BIAS_NONE,
                Bias::Row => sys::SPARSEK_BIAS_ROW,
                Bias::Column => sys::SPARSEK_BIAS_COLUMN,
            },
            activation: match options.activation {
                Activation::None => sys::SPARSEK_ACTIVATION_NONE,
                Activation::Relu => sys::SPARSEK_ACTIVATION_RELU,
                Activation::Gelu => sys::SPARSEK_ACTIVATION_GELU,
                Activation::Silu => sys::SPARSEK_ACTIVATION_SILU,
            },
            tuning_seconds: options.tuning.as_secs_f64(),
            compute: if options.tf32 {
                sys::SPARSEK_COMPUTE_TF32
            } else {
                sys::SPARSEK_COMPUTE_EXACT
            },
            flags: flag(options.batch_invariant, sys::SPARSEK_BATCH_INVARIANT)
                | flag(options.own_kernels, sys::SPARSEK_OWN_KERNELS)
                | flag(options.no_user_cache, sys::SPARSEK_NO_USER_CACHE),
            allow_dense: options.allow_dense.into(),
            values_static: options.values_static.into(),
            workers: options.workers,
            ..Default::default()
        };
        if !options.tuning.is_zero() {
            pattern.give_values_to_measure()?;
        }
        let mut handle = ptr::null_mut();
        // SAFETY: the pattern lives, and the addresses are valid for the call.
        let status = unsafe { (context.api().plan_create)(pattern.handle(), &asked, &mut handle) };
        let Some(handle) = NonNull::new(handle).filter(|_| status == sys::SPARSEK_OK) else {
            return Err(Error::of_call(context.api(), "plan_create", status));
        };
        Ok(Plan {
            pattern: pattern.clone(),
            handle,
            n: options.n,
            op: options.op,
            orders: [options.order_x, options.order_b, options.order_c],
            bias: options.bias,
            place: context.place(),
            dense: PhantomData,
        })
    }

    /// The pattern that it multiplies by.
    pub fn pattern(&self) -> &Pattern<T> {
        &self.pattern
    }

    /// The most columns that a product may have, or what else its [`Op`] calls n.
    pub fn n(&self) -> usize {
        self.n
    }

    /// What the plan is. This waits for nothing.
    ///
    /// # Errors
    ///
    /// [`crate::Status::BadAbiSize`] where the library is older than this crate.
    pub fn info(&self) -> Result<PlanInfo> {
        let context = self.pattern.context();
        let mut info = sys::sparsek_plan_info::default();
        // SAFETY: the plan lives, and the address is valid for the call.
        let status = unsafe { (context.api().plan_describe)(self.handle.as_ptr(), &mut info) };
        context.check("plan_describe", status)?;
        // SAFETY: texts live as long as the plan.
        let (kernel, reason, warning) = unsafe { (text(info.kernel), text(info.reason), text(info.warning)) };
        Ok(PlanInfo {
            kernel,
            reason,
            workspace_bytes: info.workspace_bytes,
            unit_roundoff: info.unit_roundoff,
            product_roundoff: info.product_roundoff,
            predicted_seconds: info.predicted_seconds,
            measured_seconds: info.measured_seconds,
            warning,
        })
    }

    /// C = A B, or C = act(A B) with the plan's activation, and waits for it.
    ///
    /// # Errors
    ///
    /// As [`Plan::run`].
    #[inline]
    pub fn multiply<'a>(&self, values: impl Into<VecRef<'a, T>>, b: MatRef<'a, V>, c: MatMut<'a, U>) -> Result<()> {
        self.run(Product::new(values, b, c))
    }

    /// Computes a product, and waits for it.
    ///
    /// # Errors
    ///
    /// [`Error::Extent`] where operands do not fit the pattern, the plan or each other, [`Error::Memory`] where they are
    /// elsewhere than the plan's back-end needs them, and the library's.
    pub fn run(&self, product: Product<'_, T, U, V>) -> Result<()> {
        // SAFETY: the operands are borrowed until this returns, and by then the product has ended.
        unsafe { self.start(product, ptr::null_mut()) }?;
        match self.place {
            Place::Device(_) => self.pattern.context().wait(),
            _ => Ok(()),
        }
    }

    /// Puts a product into a stream and does not wait for it, except on the CPU. It may be captured into a CUDA graph.
    ///
    /// # Safety
    ///
    /// The stream is one of the plan's device. The operands' memory, which borrows do not keep, lives and stays as it is until the product has ended, and C is
    /// not read before. A product in a graph ends when the graph is no longer used: the plan must live as long.
    ///
    /// # Errors
    ///
    /// As [`Plan::run`].
    pub unsafe fn enqueue(&self, product: Product<'_, T, U, V>, stream: &Stream) -> Result<()> {
        // SAFETY: of the caller.
        unsafe { self.start(product, stream.as_raw()) }
    }

    /// # Safety
    ///
    /// The operands live until the product has ended.
    #[inline]
    unsafe fn start(&self, product: Product<'_, T, U, V>, stream: sys::sparsek_stream) -> Result<()> {
        let n = self.check(&product)?;
        let Product {
            values,
            x,
            b,
            c,
            alpha,
            beta,
            bias,
            c_in,
        } = product;
        if c.rows == 0 || c.cols == 0 {
            return Ok(());
        }
        let args = sys::sparsek_multiply_args {
            alpha,
            beta,
            x: x.map_or(ptr::null(), |x| x.address.cast()),
            ldx: x.map_or(Ok(0), |x| extent(x.ld))?,
            b: b.address.cast(),
            ldb: extent(b.ld)?,
            c: c.address.cast(),
            ldc: if self.op == Op::Sdd { 0 } else { extent(c.ld)? },
            stream,
            bias: bias.map_or(ptr::null(), |bias| bias.address.cast()),
            values: values.map_or(ptr::null(), |values| values.address.cast()),
            n: extent(n)?,
            c_in: c_in.map_or(ptr::null(), |c_in| c_in.address.cast()),
            ldc_in: match c_in {
                Some(c_in) if self.op != Op::Sdd => extent(c_in.ld)?,
                _ => 0,
            },
            ..Default::default()
        };
        let context = self.pattern.context();
        // SAFETY: the plan lives, and the operands have the extents that the product needs.
        let status = unsafe { (context.api().multiply)(self.handle.as_ptr(), &args) };
        context.check("multiply", status)
    }

    /// Whether the operands fit, and the product's n.
    #[inline]
    fn check(&self, product: &Product<'_, T, U, V>) -> Result<usize> {
        let Product {
            values,
            x,
            b,
            c,
            bias,
            c_in,
            ..
        } = product;
        let n = match self.op {
            Op::Dsd | Op::DsdT => b.cols,
            Op::Sdd | Op::Dds | Op::DdsT => b.rows,
        };
        let (of_x, of_b, of_c) = self.op.extents(&self.pattern, n);
        let bias_len = match self.bias {
            Bias::None => None,
            Bias::Row => Some(c.rows),
            Bias::Column => Some(c.cols),
        };
        let [order_x, order_b, order_c] = self.orders;
        let sdd = self.op == Op::Sdd;
        let gapless = |ld: usize| !sdd || ld == c.cols;
        let fits = n <= self.n
            && (n > 0 || !sdd)
            && x.map(|x| (x.rows, x.cols)) == of_x
            && x.is_none_or(|x| x.order == order_x)
            && values.map(|values| values.len) == (!sdd).then(|| self.pattern.values_len())
            && (b.rows, b.cols) == of_b
            && b.order == order_b
            && (c.rows, c.cols) == of_c
            && c.order == order_c
            && gapless(c.ld)
            && bias.map(|bias| bias.len) == bias_len
            && c_in
                .is_none_or(|c_in| (c_in.rows, c_in.cols, c_in.order) == (c.rows, c.cols, c.order) && gapless(c_in.ld));
        if !fits {
            return Err(self.misfit(product));
        }
        for (what, place) in [
            ("the values", values.map(|values| values.place)),
            ("X", x.map(|x| x.place)),
            ("B", Some(b.place)),
            ("C", Some(c.place)),
            ("the bias", bias.map(|bias| bias.place)),
            ("c_in", c_in.map(|c_in| c_in.place)),
        ] {
            if let Some(place) = place {
                place.must_be(self.place, what)?;
            }
        }
        Ok(n)
    }

    #[cold]
    fn misfit(&self, product: &Product<'_, T, U, V>) -> Error {
        let Product {
            values,
            x,
            b,
            c,
            bias,
            c_in,
            ..
        } = product;
        let matrix = |what: &str, rows: usize, cols: usize, order: Order| match order {
            Order::RowMajor => format!("{what} {rows} x {cols}"),
            Order::ColumnMajor => format!("column-major {what} {rows} x {cols}"),
        };
        let operands = [
            values.map(|values| format!("{} values", values.len)),
            x.map(|x| matrix("X", x.rows, x.cols, x.order)),
            Some(matrix("B", b.rows, b.cols, b.order)),
            Some(matrix("C", c.rows, c.cols, c.order)),
            bias.map(|bias| format!("a bias of {}", bias.len)),
            c_in.map(|c_in| matrix("c_in", c_in.rows, c_in.cols, c_in.order)),
        ];
        let bias = match self.bias {
            Bias::None => "no bias",
            Bias::Row => "a bias of rows",
            Bias::Column => "a bias of columns",
        };
        let [x, b, c] = self.orders;
        Error::Extent(format!(
            "a plan of {:?} with A {} x {} of {} values, orders {x:?}, {b:?}, {c:?} of X, B and C, {bias}, and n at most {} \
             does not serve {}",
            self.op,
            self.pattern.rows(),
            self.pattern.cols(),
            self.pattern.values_len(),
            self.n,
            operands.into_iter().flatten().collect::<Vec<_>>().join(", "),
        ))
    }
}

fn code(order: Order) -> sys::sparsek_order {
    match order {
        Order::RowMajor => sys::SPARSEK_ROW_MAJOR,
        Order::ColumnMajor => sys::SPARSEK_COLUMN_MAJOR,
    }
}

fn flag(set: bool, bit: i32) -> i32 {
    if set { bit } else { 0 }
}
