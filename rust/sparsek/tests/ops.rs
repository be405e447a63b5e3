// SPDX-License-Identifier: Apache-2.0

//! Every product in every order against sums in f64, on each back-end that there is.

mod common;

use common::{Case, Number, Random, assert_close, contexts, erf};
use sparsek::half::{bf16, f16};
use sparsek::{Activation, Bias, Buffer, Context, MatMut, MatRef, Op, Order, Pattern, PlanOptions, Product};

/// A dense matrix in the memory of a context, in either order.
struct Dense<T: Number> {
    rows: usize,
    cols: usize,
    order: Order,
    elements: Vec<T>,
    buffer: Buffer<T>,
}

impl<T: Number> Dense<T> {
    fn new(context: &Context, random: &mut Random, (rows, cols): (usize, usize), order: Order) -> Dense<T> {
        let elements = random.vector(rows * cols);
        let buffer = Buffer::of(context, &elements).unwrap();
        Dense {
            rows,
            cols,
            order,
            elements,
            buffer,
        }
    }

    /// An element as it was made.
    fn at(&self, row: usize, col: usize) -> f64 {
        self.elements[self.place(row, col)].value()
    }

    fn place(&self, row: usize, col: usize) -> usize {
        match self.order {
            Order::RowMajor => row * self.cols + col,
            Order::ColumnMajor => col * self.rows + row,
        }
    }

    fn view(&self) -> MatRef<'_, T> {
        match self.order {
            Order::RowMajor => self.buffer.matrix(self.rows, self.cols).unwrap(),
            Order::ColumnMajor => self.buffer.matrix(self.cols, self.rows).unwrap().transpose(),
        }
    }

    fn view_mut(&mut self) -> MatMut<'_, T> {
        match self.order {
            Order::RowMajor => self.buffer.matrix_mut(self.rows, self.cols).unwrap(),
            Order::ColumnMajor => self.buffer.matrix_mut(self.cols, self.rows).unwrap().transpose(),
        }
    }

    fn places(&self) -> impl Iterator<Item = (usize, usize)> + use<T> {
        let cols = self.cols;
        (0..self.rows).flat_map(move |row| (0..cols).map(move |col| (row, col)))
    }
}

const ORDERS: [Order; 2] = [Order::RowMajor, Order::ColumnMajor];

fn pairs_of_orders() -> impl Iterator<Item = (Order, Order)> {
    ORDERS.into_iter().flat_map(|left| ORDERS.map(|right| (left, right)))
}

/// Rows, columns, block and n.
type Extents = (usize, usize, (usize, usize), usize);

/// Odd ones, and one that each kernel may serve.
const EXTENTS: [Extents; 3] = [(22, 19, (4, 3), 5), (64, 96, (16, 16), 33), (128, 192, (64, 64), 64)];

fn products_in_all_orders<T: Number>(seed: u64) {
    for context in contexts() {
        for (m, k, block, n) in EXTENTS {
            let case = Case::<T>::new(seed, m, k, block, 0.4);
            let pattern = Pattern::new(&context, &case.bsr()).unwrap();
            let values = Buffer::of(&context, &case.values_of_transpose()).unwrap();
            let a = |row: usize, col: usize| case.dense[row * k + col];
            let mut random = Random(seed + 100);
            for op in [Op::Dsd, Op::DsdT, Op::Dds, Op::DdsT] {
                let (of_b, of_c, terms) = match op {
                    Op::DsdT => ((m, n), (k, n), m),
                    Op::Dds => ((n, m), (n, k), m),
                    Op::DdsT => ((n, k), (n, m), k),
                    _ => ((k, n), (m, n), k),
                };
                for (order_b, order_c) in pairs_of_orders() {
                    let options = PlanOptions::new(n).op(op).orders(order_b, order_c).bias(Bias::Column);
                    let plan = pattern.plan(&options).unwrap();
                    let b = Dense::<T>::new(&context, &mut random, of_b, order_b);
                    let mut c = Dense::<T>::new(&context, &mut random, of_c, order_c);
                    let bias: Vec<T> = random.vector(of_c.1);
                    let on_device = Buffer::of(&context, &bias).unwrap();
                    let product = Product::new(&values, b.view(), c.view_mut());
                    plan.run(product.alpha(2.0).beta(-1.0).bias(&on_device)).unwrap();
                    let result = c.buffer.to_vec().unwrap();
                    for (row, col) in c.places() {
                        let (sum, size) = (0..terms)
                            .map(|i| match op {
                                Op::DsdT => a(i, row) * b.at(i, col),
                                Op::Dds => b.at(row, i) * a(i, col),
                                Op::DdsT => b.at(row, i) * a(col, i),
                                _ => a(row, i) * b.at(i, col),
                            })
                            .fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
                        let exact = 2.0 * sum - c.at(row, col) + bias[col].value();
                        let got = result[c.place(row, col)];
                        assert_close::<T, T>(got, exact, 2.0 * size + 2.0, terms, (row, col));
                    }
                }
            }
        }
    }
}

#[test]
fn products_in_all_orders_of_f32() {
    products_in_all_orders::<f32>(1);
}

#[test]
fn products_in_all_orders_of_f64() {
    products_in_all_orders::<f64>(2);
}

#[test]
fn products_in_all_orders_of_f16() {
    products_in_all_orders::<f16>(3);
}

#[test]
fn products_in_all_orders_of_bf16() {
    products_in_all_orders::<bf16>(4);
}

fn blocks_of_a_dense_product<T: Number>(seed: u64) {
    for context in contexts() {
        for (m, k, (bm, bk), n) in EXTENTS {
            let case = Case::<T>::new(seed, m, k, (bm, bk), 0.4);
            let pattern = Pattern::<T>::new(&context, &case.bsr()).unwrap();
            let mut random = Random(seed + 100);
            for (order_x, order_b) in pairs_of_orders() {
                let options = PlanOptions::new(n + 1)
                    .op(Op::Sdd)
                    .order_x(order_x)
                    .orders(order_b, Order::RowMajor);
                let plan = pattern.plan(&options).unwrap();
                let x = Dense::<T>::new(&context, &mut random, (m, n), order_x);
                let b = Dense::<T>::new(&context, &mut random, (n, k), order_b);
                let before: Vec<T> = random.vector(pattern.values_len());
                let mut blocks = Buffer::of(&context, &before).unwrap();
                let c = blocks.matrix_mut(pattern.blocks() * bm, bk).unwrap();
                plan.run(Product::sdd(x.view(), b.view(), c).beta(0.5)).unwrap();
                let result = blocks.to_vec().unwrap();
                for (row, window) in case.row_ptr.windows(2).enumerate() {
                    for block in window[0] as usize..window[1] as usize {
                        let col = case.col_idx[block] as usize;
                        for (r, c) in (0..bm).flat_map(|r| (0..bk).map(move |c| (r, c))) {
                            let (at, place) = ((block * bm + r) * bk + c, (row * bm + r, col * bk + c));
                            if place.0 >= m || place.1 >= k {
                                assert_eq!(result[at].value(), 0.0, "beyond A");
                                continue;
                            }
                            let sum: f64 = (0..n).map(|i| x.at(place.0, i) * b.at(i, place.1)).sum();
                            let exact = sum + 0.5 * before[at].value();
                            assert_close::<T, T>(result[at], exact, n as f64 + 1.0, n, place);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn blocks_of_a_dense_product_of_each_type() {
    blocks_of_a_dense_product::<f32>(11);
    blocks_of_a_dense_product::<f64>(12);
    blocks_of_a_dense_product::<f16>(13);
    blocks_of_a_dense_product::<bf16>(14);
}

#[test]
fn blocks_of_a_dense_product_have_operands_of_their_own() {
    for context in contexts() {
        let case = Case::<f64>::new(15, 22, 19, (4, 3), 0.4);
        let pattern = Pattern::<f64>::new(&context, &case.bsr()).unwrap();
        let plan = pattern.plan(&PlanOptions::new(7).op(Op::Sdd)).unwrap();
        let (values, mut blocks) = (
            Buffer::of(&context, &case.values).unwrap(),
            Buffer::<f64>::new(&context, pattern.values_len()).unwrap(),
        );
        let rows = pattern.blocks() * 4;
        let (no_x, no_b) = (MatRef::new(&[], 22, 0).unwrap(), MatRef::new(&[], 0, 19).unwrap());
        let c = blocks.matrix_mut(rows, 3).unwrap();
        assert!(plan.run(Product::sdd(no_x, no_b, c)).is_err());
        let b = Dense::<f64>::new(&context, &mut Random(16), (7, 19), Order::RowMajor);
        let c = blocks.matrix_mut(rows, 3).unwrap();
        let error = plan.run(Product::new(&values, b.view(), c)).unwrap_err().to_string();
        assert!(error.starts_with("a plan of Sdd") && !error.contains(", X "), "{error}");
    }
}

/// A of type T, B of a wider type V, C of type U.
fn mixed<T: Number, V: Number, U: Number>(seed: u64) {
    for context in contexts() {
        for (m, k, block, n) in EXTENTS {
            let case = Case::<T>::new(seed, m, k, block, 0.4);
            let options = PlanOptions::new(n).bias(Bias::Row);
            let pattern = Pattern::<T>::new(&context, &case.bsr()).unwrap();
            let plan = pattern.plan_mixed::<V, U>(&options).unwrap();
            let (b, bias): (Vec<V>, Vec<U>) = (Random(seed + 1).vector(k * n), Random(seed + 2).vector(m));
            let (values, from, added) = (
                Buffer::of(&context, &case.values).unwrap(),
                Buffer::of(&context, &b).unwrap(),
                Buffer::of(&context, &bias).unwrap(),
            );
            let mut c = Buffer::<U>::new(&context, m * n).unwrap();
            let product = Product::new(&values, from.matrix(k, n).unwrap(), c.matrix_mut(m, n).unwrap());
            plan.run(product.bias(&added)).unwrap();
            for (at, got) in c.to_vec().unwrap().into_iter().enumerate() {
                let (row, col) = (at / n, at % n);
                let (sum, size) = case.product(&b, n, row, col);
                assert_close::<V, U>(got, sum + bias[row].value(), size + 1.0, k, (row, col));
            }
        }
    }
}

#[test]
fn a_of_a_narrower_type_than_b() {
    mixed::<bf16, f32, f32>(21);
    mixed::<f16, f32, f32>(22);
    mixed::<bf16, f32, bf16>(23);
    mixed::<f32, f64, f64>(24);
    mixed::<f16, f64, f64>(25);
    for context in contexts() {
        let case = Case::<f32>::new(26, 8, 8, (4, 4), 0.5);
        let pattern = Pattern::<f32>::new(&context, &case.bsr()).unwrap();
        let error = pattern.plan_mixed::<bf16, f32>(&PlanOptions::new(1)).unwrap_err();
        assert_eq!(error.status(), Some(sparsek::Status::UnsupportedDtype), "{error}");
    }
}

#[test]
fn activations_and_biases() {
    for context in contexts() {
        let (rows, cols, n) = (64, 96, 40);
        let case = Case::<f32>::new(31, rows, cols, (16, 16), 0.5);
        let pattern = Pattern::<f32>::new(&context, &case.bsr()).unwrap();
        let values = Buffer::of(&context, &case.values).unwrap();
        let mut random = Random(32);
        let b: Vec<f32> = random.vector(cols * n);
        let from = Buffer::of(&context, &b).unwrap();
        for (kind, len) in [(Bias::Row, rows), (Bias::Column, n)] {
            for activation in [Activation::None, Activation::Relu, Activation::Gelu, Activation::Silu] {
                let plan = pattern
                    .plan(&PlanOptions::new(n).bias(kind).activation(activation))
                    .unwrap();
                let bias: Vec<f32> = random.vector(len);
                let added = Buffer::of(&context, &bias).unwrap();
                let mut c = Buffer::<f32>::new(&context, rows * n).unwrap();
                let product = Product::new(&values, from.matrix(cols, n).unwrap(), c.matrix_mut(rows, n).unwrap());
                plan.run(product.bias(&added)).unwrap();
                for (at, got) in c.to_vec().unwrap().into_iter().enumerate() {
                    let (row, col) = (at / n, at % n);
                    let (sum, size) = case.product(&b, n, row, col);
                    let x = sum + bias[if kind == Bias::Row { row } else { col }].value();
                    let exact = match activation {
                        Activation::None => x,
                        Activation::Relu => x.max(0.0),
                        Activation::Gelu => x / 2.0 * (1.0 + erf(x / 2f64.sqrt())),
                        Activation::Silu => x / (1.0 + (-x).exp()),
                    };
                    assert_close::<f32, f32>(got, exact, 2.0 * (size + 1.0), cols, (row, col));
                }
            }
        }
    }
}
