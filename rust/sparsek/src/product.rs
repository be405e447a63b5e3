// SPDX-License-Identifier: Apache-2.0

use crate::{MatMut, MatRef, VecRef};

/// One product, for [`Plan::run`](crate::Plan::run) and [`Plan::enqueue`](crate::Plan::enqueue).
#[derive(Debug)]
pub struct Product<'a, T, U = T, V = T> {
    pub(crate) values: Option<VecRef<'a, T>>,
    pub(crate) x: Option<MatRef<'a, T>>,
    pub(crate) b: MatRef<'a, V>,
    pub(crate) c: MatMut<'a, U>,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    pub(crate) bias: Option<VecRef<'a, U>>,
    pub(crate) c_in: Option<MatRef<'a, U>>,
}

impl<'a, T, U, V> Product<'a, T, U, V> {
    /// C = A B, or the plan's other product, with these values of A's blocks.
    pub fn new(values: impl Into<VecRef<'a, T>>, b: MatRef<'a, V>, c: MatMut<'a, U>) -> Product<'a, T, U, V> {
        Product {
            values: Some(values.into()),
            x: None,
            b,
            c,
            alpha: 1.0,
            beta: 0.0,
            bias: None,
            c_in: None,
        }
    }

    /// C = the blocks of X B that A has, by a plan of [`Op::Sdd`](crate::Op::Sdd).
    pub fn sdd(x: MatRef<'a, T>, b: MatRef<'a, V>, c: MatMut<'a, U>) -> Product<'a, T, U, V> {
        Product {
            values: None,
            x: Some(x),
            b,
            c,
            alpha: 1.0,
            beta: 0.0,
            bias: None,
            c_in: None,
        }
    }

    /// The factor of A B, or of the plan's other product. It is finite.
    #[must_use]
    pub fn alpha(mut self, alpha: f32) -> Self {
        self.alpha = alpha;
        self
    }

    /// The factor of what C held before. It is finite; with 0, which it is otherwise, C is not read.
    #[must_use]
    pub fn beta(mut self, beta: f32) -> Self {
        self.beta = beta;
        self
    }

    /// A matrix of C's extents and order in place of what C held before.
    #[must_use]
    pub fn c_in(mut self, c_in: MatRef<'a, U>) -> Self {
        self.c_in = Some(c_in);
        self
    }

    /// The bias: one value for each row or column of C, as planned.
    #[must_use]
    pub fn bias(mut self, bias: impl Into<VecRef<'a, U>>) -> Self {
        self.bias = Some(bias.into());
        self
    }
}
