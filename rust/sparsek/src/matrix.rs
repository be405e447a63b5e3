// SPDX-License-Identifier: Apache-2.0

use std::sync::{Arc, Mutex, PoisonError};

use crate::blocks::Blocks;
use crate::{
    Bsr, Buffer, Context, Element, Error, Index, MatMut, MatRef, Order, Pattern, Plan, PlanOptions, Result, VecRef,
};

/// A block-sparse matrix: a pattern with its values, and the plans of its last products.
#[derive(Debug)]
pub struct Matrix<T: Element> {
    pattern: Pattern<T>,
    values: Values<T>,
    /// By whether the operands are aligned, and the orders of B and C.
    plans: Mutex<[[[Kept<T>; 2]; 2]; 2]>,
}

type Kept<T> = Option<Arc<Plan<T>>>;

#[derive(Debug)]
enum Values<T: Element> {
    Host(Vec<T>),
    Device(Buffer<T>),
}

impl<T: Element> Matrix<T> {
    /// A matrix of the blocks' values, (blocks, block.0, block.1), each block row-major. On a GPU they are copied into
    /// its memory.
    ///
    /// # Errors
    ///
    /// As [`Pattern::new`], and [`Error::Extent`] where there are fewer or more values than blocks.
    pub fn new<I: Index>(context: &Context, bsr: &Bsr<'_, I>, values: Vec<T>) -> Result<Matrix<T>> {
        Matrix::of_pattern(&Pattern::new(context, bsr)?, values)
    }

    /// A matrix of a pattern that others may have too.
    ///
    /// # Errors
    ///
    /// As [`Matrix::new`].
    pub fn of_pattern(pattern: &Pattern<T>, values: Vec<T>) -> Result<Matrix<T>> {
        if values.len() != pattern.values_len() {
            let (blocks, (bm, bk)) = (pattern.blocks(), pattern.block());
            return Err(Error::Extent(format!(
                "{} values are not {blocks} blocks of {bm} x {bk}",
                values.len()
            )));
        }
        let values = match pattern.context().is_cpu() {
            true => Values::Host(values),
            false => Values::Device(Buffer::of(pattern.context(), &values)?),
        };
        Ok(Matrix {
            pattern: pattern.clone(),
            values,
            plans: Mutex::default(),
        })
    }

    /// The blocks of a dense matrix in host memory that have a value other than 0.
    ///
    /// # Errors
    ///
    /// As [`Matrix::new`], and [`Error::Memory`] where the matrix is a buffer's or at an address.
    pub fn from_dense(context: &Context, dense: MatRef<'_, T>, block: (usize, usize)) -> Result<Matrix<T>> {
        let Blocks {
            row_ptr,
            col_idx,
            values,
        } = Blocks::of_dense(&dense, block)?;
        let bsr = Bsr::new(dense.rows, dense.cols, block, &row_ptr, &col_idx);
        Matrix::new(context, &bsr, values)
    }

    /// The pattern, for plans of other products.
    pub fn pattern(&self) -> &Pattern<T> {
        &self.pattern
    }

    /// The values, for products by plans of the pattern.
    pub fn values(&self) -> VecRef<'_, T> {
        match &self.values {
            Values::Host(values) => values.into(),
            Values::Device(values) => values.into(),
        }
    }

    /// Changes the values.
    ///
    /// # Errors
    ///
    /// [`Error::Extent`] where there are fewer or more.
    pub fn set_values(&mut self, new: &[T]) -> Result<()> {
        match &mut self.values {
            Values::Device(values) => values.write(new),
            Values::Host(values) if values.len() == new.len() => {
                values.copy_from_slice(new);
                Ok(())
            }
            Values::Host(values) => Err(Error::Extent(format!(
                "{} values in place of {}",
                new.len(),
                values.len()
            ))),
        }
    }

    /// C = A B, and waits for it. The plan is made by the first product, and again where B has more columns, or less than
    /// half as many. Each order of B and C has a plan of its own. On a GPU rows that begin at multiples of 16 bytes have
    /// plans of their own, which may be faster.
    ///
    /// # Errors
    ///
    /// As [`Pattern::plan`] and [`Plan::run`].
    pub fn multiply(&self, b: MatRef<'_, T>, c: MatMut<'_, T>) -> Result<()> {
        self.plan_of(&b, &c)?.multiply(self.values(), b, c)
    }

    fn plan_of(&self, b: &MatRef<'_, T>, c: &MatMut<'_, T>) -> Result<Arc<Plan<T>>> {
        let (columns, mut options) = (c.cols, PlanOptions::new(c.cols).orders(b.order, c.order));
        options = options.ldb(b.ld).ldc(c.ld);
        let aligned = is_aligned(b.address, b.ld) && is_aligned(c.address, c.ld);
        if !aligned {
            options = options.alignment(size_of::<T>());
        }
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let column_major = |order: Order| usize::from(order == Order::ColumnMajor);
        let kept = &mut plans[usize::from(aligned)][column_major(b.order)][column_major(c.order)];
        if let Some(plan) = kept
            .as_ref()
            .filter(|plan| (columns..=columns.saturating_mul(2)).contains(&plan.n()))
        {
            return Ok(plan.clone());
        }
        let plan = Arc::new(self.pattern.plan(&options)?);
        *kept = Some(plan.clone());
        Ok(plan)
    }
}

/// Whether rows begin at multiples of the 16 bytes that kernels load at once. A plan for such operands may refuse others.
fn is_aligned<T>(address: *const T, ld: usize) -> bool {
    let bytes = ld.checked_mul(size_of::<T>());
    address.addr().is_multiple_of(16) && bytes.is_some_and(|bytes| bytes.is_multiple_of(16))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How the plan of a product is found: n, and whether it may need rows at multiples of 16 bytes.
    #[test]
    #[cfg_attr(miri, ignore = "calls libsparsek")]
    fn fewer_columns_whose_rows_are_not_aligned_have_another_plan() {
        let context = match Context::cpu() {
            Ok(context) => context,
            Err(error) => {
                assert!(std::env::var_os("SPARSEK_LIBRARY").is_none(), "{error}");
                return;
            }
        };
        let bsr = Bsr::new(1, 1, (1, 1), &[0i32, 1], &[0]);
        let matrix = Matrix::<f32>::new(&context, &bsr, vec![1.0]).unwrap();
        let mut memory = [0f32; 200];
        let first = memory.as_ptr().addr().wrapping_neg() % 16 / 4;
        let (b, c) = memory[first..first + 160].split_at_mut(80);
        let mut plan = |skip: usize, columns: usize, ldb: usize, ldc: usize| {
            let b = MatRef::with_ld(&b[skip..], 1, columns, ldb).unwrap();
            let c = MatMut::with_ld(&mut c[..], 1, columns, ldc).unwrap();
            matrix.plan_of(&b, &c).unwrap()
        };
        let aligned = plan(0, 40, 40, 40);
        assert!(Arc::ptr_eq(&aligned, &plan(0, 40, 40, 40)));
        assert!(Arc::ptr_eq(&aligned, &plan(0, 32, 32, 32)));
        assert!(Arc::ptr_eq(&aligned, &plan(0, 33, 36, 40)));
        let other = plan(0, 33, 33, 33);
        for (skip, ldb, ldc) in [(0, 33, 36), (0, 36, 33), (1, 36, 36)] {
            assert!(Arc::ptr_eq(&other, &plan(skip, 33, ldb, ldc)), "{skip}, {ldb}, {ldc}");
        }
        assert!(!Arc::ptr_eq(&aligned, &other));
        // Products of the one do not replace the plan of the other.
        assert!(Arc::ptr_eq(&aligned, &plan(0, 36, 36, 36)));
        assert_eq!((aligned.n(), other.n(), plan(0, 16, 16, 16).n()), (40, 33, 16));
    }
}
