// SPDX-License-Identifier: Apache-2.0

use crate::operand::Place;
use crate::{Element, Error, MatRef, Order, Result};

/// The blocks of a dense matrix that have a value other than 0.
pub(crate) struct Blocks<T> {
    /// (ceil(rows / block.0) + 1)
    pub(crate) row_ptr: Vec<i64>,
    /// (blocks)
    pub(crate) col_idx: Vec<i64>,
    /// (blocks, block.0, block.1), with zeros beyond the matrix.
    pub(crate) values: Vec<T>,
}

impl<T: Element> Blocks<T> {
    /// # Errors
    ///
    /// [`Error::Memory`] where the matrix is not in host memory, [`Error::Extent`] where a block has no elements, or more
    /// than memory can hold.
    pub(crate) fn of_dense(dense: &MatRef<'_, T>, (bm, bk): (usize, usize)) -> Result<Blocks<T>> {
        if dense.place != Place::Host {
            return Err(Error::Memory(
                "blocks are made of a matrix in host memory alone".to_owned(),
            ));
        }
        let (rows, cols) = (dense.rows, dense.cols);
        if bm == 0 || bk == 0 {
            return Err(Error::Extent(format!("blocks of {bm} x {bk} have no elements")));
        }
        let too_large = || Error::Extent(format!("blocks of {bm} x {bk} are more than memory can hold"));
        let area = bm.checked_mul(bk).ok_or_else(too_large)?;
        let (down, right) = match dense.order {
            Order::RowMajor => (dense.ld, 1),
            Order::ColumnMajor => (1, dense.ld),
        };
        // SAFETY: it is a borrow of host memory, of which places below `rows` and `cols` are a part.
        let at = |row: usize, col: usize| unsafe { *dense.address.add(row * down + col * right) };
        let (mut row_ptr, mut col_idx, mut values) = (vec![0i64], Vec::new(), Vec::new());
        for first_row in (0..rows).step_by(bm) {
            let height = bm.min(rows - first_row);
            for first_col in (0..cols).step_by(bk) {
                let width = bk.min(cols - first_col);
                let begin = values.len();
                values.try_reserve(area).map_err(|_| too_large())?;
                values.resize(begin + area, T::default());
                for (row, to) in (first_row..first_row + height).zip(values[begin..].chunks_exact_mut(bk)) {
                    for (col, to) in (first_col..first_col + width).zip(to) {
                        *to = at(row, col);
                    }
                }
                if values[begin..].iter().all(|value| *value == T::default()) {
                    values.truncate(begin);
                } else {
                    col_idx.push((first_col / bk) as i64);
                }
            }
            row_ptr.push(col_idx.len() as i64);
        }
        Ok(Blocks {
            row_ptr,
            col_idx,
            values,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 3 x 4 in blocks of 2 x 3, as a part of larger slices, in both orders.
    #[test]
    fn blocks_are_read_within_the_matrix() {
        let dense = [[1.0f32, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0], [0.0, 0.0, 0.0, 3.0]];
        let (mut rows, mut columns) = ([9.0; 2 * 5 + 4], [9.0; 3 * 4 + 3]);
        for (row, col) in (0..3).flat_map(|row| (0..4).map(move |col| (row, col))) {
            rows[row * 5 + col] = dense[row][col];
            columns[col * 4 + row] = dense[row][col];
        }
        for view in [
            MatRef::with_ld(&rows, 3, 4, 5).unwrap(),
            MatRef::with_ld(&columns, 4, 3, 4).unwrap().transpose(),
        ] {
            let blocks = Blocks::of_dense(&view, (2, 3)).unwrap();
            assert_eq!(
                (&blocks.row_ptr[..], &blocks.col_idx[..]),
                (&[0, 1, 2][..], &[0, 1][..])
            );
            assert_eq!(
                blocks.values,
                [1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0]
            );
        }
        let empty = Blocks::of_dense(&MatRef::<f32>::new(&[], 0, 4).unwrap(), (2, 3)).unwrap();
        assert_eq!((&empty.row_ptr[..], empty.values.len()), (&[0][..], 0));
    }
}
