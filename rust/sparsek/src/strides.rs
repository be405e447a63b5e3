// SPDX-License-Identifier: Apache-2.0

//! The orders of arrays of other crates.

use crate::{Error, Order, Result};

/// How an array lies in memory: its order, and how many elements rows or columns are apart.
pub(crate) fn layout((rows, cols): (usize, usize), strides: &[isize]) -> Result<(Order, usize)> {
    if rows == 0 || cols == 0 {
        return Ok((Order::RowMajor, cols));
    }
    // Where there is one row or column, the distance to the next is any.
    let ld = |count: usize, length: usize, inner: isize, outer: isize| {
        let ld = if count < 2 { length as isize } else { outer };
        ((length < 2 || inner == 1) && ld >= length as isize).then_some(ld as usize)
    };
    if let Some(ld) = ld(rows, cols, strides[1], strides[0]) {
        return Ok((Order::RowMajor, ld));
    }
    if let Some(ld) = ld(cols, rows, strides[0], strides[1]) {
        return Ok((Order::ColumnMajor, ld));
    }
    Err(Error::Extent(format!(
        "an array of {rows} x {cols} with strides {strides:?} is neither row-major nor column-major: copy it to one that is"
    )))
}

/// How many elements there are from the first to the last one.
pub(crate) fn span(rows: usize, cols: usize, ld: usize) -> usize {
    if rows == 0 { 0 } else { (rows - 1) * ld + cols }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_distances() {
        for (extents, strides, is) in [
            ((2, 3), [3, 1], Some((Order::RowMajor, 3))),
            ((2, 3), [5, 1], Some((Order::RowMajor, 5))),
            ((2, 3), [1, 2], Some((Order::ColumnMajor, 2))),
            ((2, 3), [1, 4], Some((Order::ColumnMajor, 4))),
            ((1, 3), [99, 1], Some((Order::RowMajor, 3))),
            ((3, 1), [7, 99], Some((Order::RowMajor, 7))),
            ((0, 3), [0, 0], Some((Order::RowMajor, 3))),
            ((2, 3), [2, 1], None),
            ((2, 3), [0, 1], None),
            ((2, 3), [-3, 1], None),
            ((2, 3), [6, 2], None),
        ] {
            assert_eq!(layout(extents, &strides).ok(), is, "{extents:?}, {strides:?}");
        }
        assert_eq!((span(0, 3, 9), span(2, 3, 9)), (0, 12));
    }
}
