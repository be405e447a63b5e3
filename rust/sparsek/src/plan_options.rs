// SPDX-License-Identifier: Apache-2.0

use std::time::Duration;

use sparsek_sys as sys;

use crate::{Element, Order, Pattern};

/// The product of a plan. A is the matrix, M x K, and n is what the plan was made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Op {
    /// C = act(alpha A B + beta C + bias): B is K x n, C is M x n.
    #[default]
    Dsd,
    /// C = act(alpha A^T B + beta C + bias): B is M x n, C is K x n.
    DsdT,
    /// The blocks of act(alpha X B + beta C) where A has blocks: X is M x n, B is n x K. C is the blocks one below the
    /// other, in the places that A's values have: (blocks * block.0) x block.1, without gaps. What a block has beyond A
    /// becomes 0. There is no bias.
    Sdd,
    /// C = act(alpha B A + beta C + bias): B is n x M, C is n x K.
    Dds,
    /// C = act(alpha B A^T + beta C + bias): B is n x K, C is n x M.
    DdsT,
}

/// Rows and columns of a dense matrix.
pub(crate) type Extents = (usize, usize);

impl Op {
    pub(crate) fn code(self) -> sys::sparsek_op {
        match self {
            Op::Dsd => sys::SPARSEK_DSD,
            Op::DsdT => sys::SPARSEK_DSD_T,
            Op::Sdd => sys::SPARSEK_SDD,
            Op::Dds => sys::SPARSEK_DDS,
            Op::DdsT => sys::SPARSEK_DDS_T,
        }
    }

    /// The extents of X, of [`Op::Sdd`] alone, and of B and C.
    #[inline]
    pub(crate) fn extents<T: Element>(self, pattern: &Pattern<T>, n: usize) -> (Option<Extents>, Extents, Extents) {
        let (m, k) = (pattern.rows(), pattern.cols());
        match self {
            Op::Dsd => (None, (k, n), (m, n)),
            Op::DsdT => (None, (m, n), (k, n)),
            Op::Sdd => (
                Some((m, n)),
                (n, k),
                (pattern.blocks() * pattern.block().0, pattern.block().1),
            ),
            Op::Dds => (None, (n, m), (n, k)),
            Op::DdsT => (None, (n, k), (n, m)),
        }
    }
}

/// What is added to a product.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Bias {
    /// Nothing.
    #[default]
    None,
    /// One value for each row of C.
    Row,
    /// One value for each column of C.
    Column,
}

/// What is applied to each element of a product, last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Activation {
    /// Nothing.
    #[default]
    None,
    /// max(x, 0)
    Relu,
    /// x Phi(x) = x / 2 (1 + erf(x / sqrt 2))
    Gelu,
    /// x / (1 + exp(-x))
    Silu,
}

/// What a plan is made for.
#[derive(Clone, Debug, Default)]
pub struct PlanOptions {
    pub(crate) n: usize,
    pub(crate) op: Op,
    pub(crate) order_x: Order,
    pub(crate) order_b: Order,
    pub(crate) order_c: Order,
    pub(crate) ldx: usize,
    pub(crate) ldb: usize,
    pub(crate) ldc: usize,
    pub(crate) kernel: Option<String>,
    pub(crate) bias: Bias,
    pub(crate) activation: Activation,
    pub(crate) tuning: Duration,
    pub(crate) alignment: usize,
    pub(crate) batch_invariant: bool,
    pub(crate) tf32: bool,
    pub(crate) own_kernels: bool,
    pub(crate) no_user_cache: bool,
    pub(crate) allow_dense: bool,
    pub(crate) values_static: bool,
    pub(crate) workers: i32,
}

impl PlanOptions {
    /// Products of at most so many columns of B and C, or of what [`Op`] calls n.
    pub fn new(n: usize) -> PlanOptions {
        PlanOptions {
            n,
            ..Default::default()
        }
    }

    /// The product, A B otherwise.
    #[must_use]
    pub fn op(mut self, op: Op) -> Self {
        self.op = op;
        self
    }

    /// The orders of B and C; that of C of [`Op::Sdd`] is row-major.
    #[must_use]
    pub fn orders(mut self, b: Order, c: Order) -> Self {
        (self.order_b, self.order_c) = (b, c);
        self
    }

    /// The order of X of [`Op::Sdd`].
    #[must_use]
    pub fn order_x(mut self, x: Order) -> Self {
        self.order_x = x;
        self
    }

    /// How many elements apart the rows of B will be, or the columns of a column-major one; 0, as it is otherwise: they
    /// have no gaps. The kernel is chosen for it; products may have another.
    #[must_use]
    pub fn ldb(mut self, ldb: usize) -> Self {
        self.ldb = ldb;
        self
    }

    /// As [`PlanOptions::ldb`], of C; 0 for [`Op::Sdd`].
    #[must_use]
    pub fn ldc(mut self, ldc: usize) -> Self {
        self.ldc = ldc;
        self
    }

    /// As [`PlanOptions::ldb`], of the X of [`Op::Sdd`].
    #[must_use]
    pub fn ldx(mut self, ldx: usize) -> Self {
        self.ldx = ldx;
        self
    }

    /// The kernel of this name, in place of the one that a measurement or the cost model chooses.
    #[must_use]
    pub fn kernel(mut self, name: &str) -> Self {
        self.kernel = Some(name.to_owned());
        self
    }

    /// What products add.
    #[must_use]
    pub fn bias(mut self, bias: Bias) -> Self {
        self.bias = bias;
        self
    }

    /// What products apply.
    #[must_use]
    pub fn activation(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self
    }

    /// Measures kernels for about this long, unless a similar product was measured before. The pattern keeps random
    /// values for it.
    #[must_use]
    pub fn tuning(mut self, time: Duration) -> Self {
        self.tuning = time;
        self
    }

    /// Of how many bytes the addresses of B and C will be multiples; 0: 16 on a GPU, the size of an element on the CPU.
    ///
    /// Where this and the planned `ldb` and `ldc` are multiples of 16 bytes, a kernel may need those of each product to
    /// be: others are refused with [`crate::Status::BadLeadingDimension`]. A plan for them has the size of an element
    /// here.
    #[must_use]
    pub fn alignment(mut self, bytes: usize) -> Self {
        self.alignment = bytes;
        self
    }

    /// For matrices of `f32`: elements may be rounded to TF32, which has 10 bits of fraction, before they are multiplied.
    /// [`product_roundoff`](crate::PlanInfo::product_roundoff) says what that costs; the CPU does not round.
    #[must_use]
    pub fn tf32(mut self) -> Self {
        self.tf32 = true;
        self
    }

    /// No kernel of another library.
    #[must_use]
    pub fn own_kernels(mut self) -> Self {
        self.own_kernels = true;
        self
    }

    /// The user's file of measurements is neither read nor written.
    #[must_use]
    pub fn no_user_cache(mut self) -> Self {
        self.no_user_cache = true;
        self
    }

    /// Absent blocks may be multiplied as zeros: where B has NaN or infinities, C may then have NaN that no block reads.
    #[must_use]
    pub fn allow_dense(mut self) -> Self {
        self.allow_dense = true;
        self
    }

    /// A promise that values are not computed in the stream of a product shortly before it.
    #[must_use]
    pub fn values_static(mut self) -> Self {
        self.values_static = true;
        self
    }

    /// The most threads of the CPU, or blocks of threads of a GPU, that a product uses; 0: all.
    #[must_use]
    pub fn workers(mut self, most: i32) -> Self {
        self.workers = most;
        self
    }

    /// A column of C has the same bits however many columns there are.
    #[must_use]
    pub fn batch_invariant(mut self) -> Self {
        self.batch_invariant = true;
        self
    }
}
