// SPDX-License-Identifier: Apache-2.0

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sparsek::half::{bf16, f16};
use sparsek::{Backend, Bsr, Context, ContextOptions, Element, Error, Pattern, Plan};

use crate::form::{self, Kind};

/// Where the operands of a product are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Host,
    /// The memory of the GPU of this number.
    #[cfg_attr(
        not(any(test, feature = "cuda")),
        expect(dead_code, reason = "of the backend for CUDA")
    )]
    Cuda(i32),
}

/// The context of all products of this process in a place.
pub(crate) fn context(place: Place) -> Result<Context, Error> {
    static CONTEXTS: Mutex<Vec<(Place, Context)>> = Mutex::new(Vec::new());
    let mut contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, context)) = contexts.iter().find(|(of, _)| *of == place) {
        return Ok(context.clone());
    }
    let made = match place {
        Place::Host => Context::cpu()?,
        Place::Cuda(device) => Context::new(&ContextOptions {
            backend: Backend::Cuda,
            device,
            ..Default::default()
        })?,
    };
    contexts.push((place, made.clone()));
    Ok(made)
}

/// Whether libsparsek is there.
///
/// # Errors
///
/// Why it is not, and where it was searched for.
pub fn check() -> Result<(), Error> {
    context(Place::Host).map(|_| ())
}

/// Where a matrix has blocks. A clone is the same pattern, with the same plans.
#[derive(Clone)]
pub struct BsrPattern {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    rows: usize,
    cols: usize,
    block: [usize; 2],
    row_ptr: Vec<i32>,
    col_idx: Vec<i32>,
    f32: Plans<f32>,
    f64: Plans<f64>,
    f16: Plans<f16>,
    bf16: Plans<bf16>,
}

impl fmt::Debug for BsrPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            rows,
            cols,
            block: [bm, bk],
            ..
        } = &*self.inner;
        write!(f, "BsrPattern({rows}x{cols} in {bm}x{bk}, {} blocks)", self.blocks())
    }
}

impl BsrPattern {
    /// A matrix of `rows` x `cols` in blocks of `block`: the blocks of block row i are `row_ptr[i]..row_ptr[i + 1]`, and
    /// `col_idx` has their block columns, increasing within a block row.
    ///
    /// # Panics
    ///
    /// Where the extents are no multiples of the block's, or the index is faulty.
    pub fn new(rows: usize, cols: usize, block: [usize; 2], row_ptr: Vec<i32>, col_idx: Vec<i32>) -> BsrPattern {
        BsrPattern::checked(rows, cols, block, row_ptr, col_idx).unwrap_or_else(|fault| panic!("{fault}"))
    }

    /// As [`BsrPattern::new`]: a fault of the extents or the index is an error.
    pub(crate) fn checked(
        rows: usize,
        cols: usize,
        block: [usize; 2],
        row_ptr: Vec<i32>,
        col_idx: Vec<i32>,
    ) -> Result<BsrPattern, String> {
        let [bm, bk] = block;
        if bm == 0 || bk == 0 {
            return Err(format!("blocks of {bm} x {bk} have no elements"));
        }
        if !rows.is_multiple_of(bm) || !cols.is_multiple_of(bk) {
            return Err(format!("{rows} x {cols} is no multiple of blocks of {bm} x {bk}"));
        }
        let ends = (row_ptr.first().copied(), row_ptr.last().map(|last| *last as usize));
        if row_ptr.len() != rows / bm + 1 || ends != (Some(0), Some(col_idx.len())) || !row_ptr.is_sorted() {
            return Err(format!(
                "row_ptr does not go from 0 to the {} blocks in {} steps",
                col_idx.len(),
                rows / bm
            ));
        }
        for row in row_ptr.windows(2) {
            let columns = &col_idx[row[0] as usize..row[1] as usize];
            if !columns.is_sorted_by(|a, b| a < b) {
                return Err(format!("the block columns {columns:?} do not increase"));
            }
            let within = |column: &i32| (0..(cols / bk) as i64).contains(&i64::from(*column));
            if !columns.iter().all(within) {
                let across = cols / bk;
                return Err(format!("of {columns:?}, some are not below {across} block columns"));
            }
        }
        let inner = Inner {
            rows,
            cols,
            block,
            row_ptr,
            col_idx,
            f32: Plans::default(),
            f64: Plans::default(),
            f16: Plans::default(),
            bf16: Plans::default(),
        };
        Ok(BsrPattern { inner: Arc::new(inner) })
    }

    /// The blocks where `mask`, of (rows / bm) x (cols / bk) and row-major, is true.
    ///
    /// # Panics
    ///
    /// As [`BsrPattern::new`], and where the mask has other extents.
    pub fn of_mask(rows: usize, cols: usize, block: [usize; 2], mask: &[bool]) -> BsrPattern {
        let across = cols / block[1].max(1);
        assert!(
            across > 0 && mask.len() == rows / block[0].max(1) * across,
            "a mask of {} blocks is not that of {rows} x {cols} in {block:?}",
            mask.len()
        );
        let (mut row_ptr, mut col_idx) = (vec![0], Vec::new());
        for row in mask.chunks_exact(across) {
            col_idx.extend(
                row.iter()
                    .zip(0..)
                    .filter(|(there, _)| **there)
                    .map(|(_, column)| column),
            );
            row_ptr.push(col_idx.len() as i32);
        }
        BsrPattern::new(rows, cols, block, row_ptr, col_idx)
    }

    /// Rows and columns of the matrix.
    pub fn shape(&self) -> [usize; 2] {
        [self.inner.rows, self.inner.cols]
    }

    /// Rows and columns of a block.
    pub fn block(&self) -> [usize; 2] {
        self.inner.block
    }

    /// How many blocks it has.
    pub fn blocks(&self) -> usize {
        self.inner.col_idx.len()
    }

    /// Where the blocks of each block row begin, and last how many there are.
    pub fn row_ptr(&self) -> &[i32] {
        &self.inner.row_ptr
    }

    /// The block column of each block.
    pub fn col_idx(&self) -> &[i32] {
        &self.inner.col_idx
    }

    /// The block row and column of each block.
    pub fn places(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let row_of = |row: usize| self.inner.row_ptr[row] as usize..self.inner.row_ptr[row + 1] as usize;
        (0..self.inner.row_ptr.len() - 1).flat_map(move |row| {
            self.inner.col_idx[row_of(row)]
                .iter()
                .map(move |column| (row, *column as usize))
        })
    }

    /// The plan for products with n, in a place and of operands at multiples of 16 bytes or not. Kernels are measured for
    /// about `tuning` where no similar product has been measured.
    pub(crate) fn plan<T: Number>(
        &self,
        (place, aligned): (Place, bool),
        kind: Kind,
        n: usize,
        tuning: Duration,
    ) -> Result<Arc<Plan<T>>, Error> {
        let plans = T::plans(&self.inner);
        let mut recent = plans.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (place, aligned, kind, n, !tuning.is_zero());
        if let Some(at) = recent.iter().position(|kept| kept.key == key) {
            recent[..=at].rotate_right(1);
            return Ok(recent[0].plan.clone());
        }
        let mut options = form::options(kind, n).tuning(tuning);
        if !aligned {
            options = options.alignment(size_of::<T>());
        }
        let plan = Arc::new(self.of_library(place)?.plan(&options)?);
        recent.truncate(MOST - 1);
        let made = plan.clone();
        recent.insert(0, Kept { key, plan });
        Ok(made)
    }

    /// The pattern in the library, of a place.
    fn of_library<T: Number>(&self, place: Place) -> Result<Pattern<T>, Error> {
        let mut patterns = T::plans(&self.inner)
            .patterns
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((_, pattern)) = patterns.iter().find(|(of, _)| *of == place) {
            return Ok(pattern.clone());
        }
        let Inner {
            rows,
            cols,
            block: [bm, bk],
            row_ptr,
            col_idx,
            ..
        } = &*self.inner;
        let made = Pattern::new(&context(place)?, &Bsr::new(*rows, *cols, (*bm, *bk), row_ptr, col_idx))?;
        patterns.push((place, made.clone()));
        Ok(made)
    }
}

/// What the library has of a pattern, for values of a type.
pub(crate) struct Plans<T: Element> {
    patterns: Mutex<Vec<(Place, Pattern<T>)>>,
    /// The plans that were used last, the last one first.
    recent: Mutex<Vec<Kept<T>>>,
}

impl<T: Element> Default for Plans<T> {
    fn default() -> Self {
        Plans {
            patterns: Mutex::default(),
            recent: Mutex::default(),
        }
    }
}

struct Kept<T: Element> {
    key: (Place, bool, Kind, usize, bool),
    plan: Arc<Plan<T>>,
}

/// The share `density` of `all` blocks, rounded up: what the product in f64 is off by, as 0.07 * 100 is, makes no block.
pub(crate) fn share_of(all: usize, density: f64) -> usize {
    let (exact, near) = (density * all as f64, (density * all as f64).round());
    let share = if (exact - near).abs() <= 1e-12 * near {
        near
    } else {
        exact.ceil()
    };
    (share as usize).min(all)
}

/// How many plans a pattern keeps for each type.
const MOST: usize = 32;

/// A type of elements, and where a pattern has its plans.
pub(crate) trait Number: Element {
    fn plans(inner: &Inner) -> &Plans<Self>;
}

macro_rules! numbers {
    ($($type:ty: $plans:ident),*) => {$(
        impl Number for $type {
            fn plans(inner: &Inner) -> &Plans<Self> {
                &inner.$plans
            }
        }
    )*};
}
numbers!(f32: f32, f64: f64, f16: f16, bf16: bf16);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BsrForm, BsrGemm, BsrGemmConfig, BsrTensor};
    use burn::tensor::{Device, Tensor};

    #[test]
    fn shares_are_rounded_up() {
        for (all, density, share) in [
            (100, 0.07, 7),
            (100, 0.071, 8),
            (100, 0.0701, 8),
            (3, 1e-13, 1),
            (10, 0.0, 0),
            (3, 1.0, 3),
            (3, 1.0 / 3.0, 1),
            (49, 1.0 / 49.0, 1),
        ] {
            assert_eq!(share_of(all, density), share, "{density} of {all}");
        }
    }

    #[test]
    fn plans_are_measured_where_that_is_asked_for() {
        if let Err(error) = check() {
            assert!(std::env::var_os("SPARSEK_LIBRARY").is_none(), "{error}");
            return;
        }
        let device = Device::flex();
        let short = BsrGemmConfig::new().with_tuning(Duration::from_millis(2));
        type Call = fn(BsrTensor, Tensor<2>, BsrGemmConfig) -> Tensor<2>;
        // What was measured once is known to all plans of the process: the one that is not measured comes first.
        for (config, call, measured) in [
            (
                BsrGemmConfig::new(),
                (|a, b, config| BsrGemm::new(config).forward(&a, b)) as Call,
                false,
            ),
            (short.clone(), BsrGemm::auto_tuned, true),
            (BsrGemmConfig::new(), BsrGemm::auto_tuned, true),
            (short, |a, b, config| BsrGemm::new(config).forward(&a, b), true),
        ] {
            let a = BsrTensor::from_dense(Tensor::ones([64, 96], &device), [16, 16], 0.5);
            call(a.clone(), Tensor::ones([96, 8], &device), config.clone());
            let plans = a.pattern().inner.f32.recent.lock().unwrap();
            assert_eq!(plans.len(), 1);
            let info = plans[0].plan.info().unwrap();
            assert_eq!(
                (plans[0].key, info.measured_seconds > 0.0),
                ((Place::Host, true, Kind::Product(BsrForm::Left), 8, measured), measured),
                "{config:?}: {info:?}"
            );
        }
    }
}
