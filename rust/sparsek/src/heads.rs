// SPDX-License-Identifier: Apache-2.0

use std::marker::PhantomData;

use crate::operand::Place;
use crate::{Buffer, Element, Error, Result};

/// An operand of attention that is read: (batch, heads, rows, size), with the extents that the attention has. Made of
/// slices, vectors and [`Buffer`]s by `into`, without gaps unless [`HeadsRef::strides`] says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct HeadsRef<'a, T> {
    pub(crate) view: View<T>,
    memory: PhantomData<&'a [T]>,
}

/// An operand of attention that is written, as [`HeadsRef`] is one that is read.
#[derive(Debug)]
pub struct HeadsMut<'a, T> {
    pub(crate) view: View<T>,
    memory: PhantomData<&'a mut [T]>,
}

// SAFETY: it is a borrow of elements, as a slice is.
unsafe impl<T: Sync> Send for HeadsRef<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for HeadsRef<'_, T> {}
// SAFETY: as a slice that is borrowed to be written.
unsafe impl<T: Send> Send for HeadsMut<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for HeadsMut<'_, T> {}

impl<T> HeadsRef<'_, T> {
    /// `len` elements at an address, in whatever memory.
    ///
    /// # Safety
    ///
    /// As of [`MatRef::from_raw`](crate::MatRef::from_raw), for `len` elements.
    pub unsafe fn from_raw(address: *const T, len: usize) -> Self {
        View::new(address.cast_mut(), len, Place::Unknown).into()
    }

    /// Elements from one batch, one head and one row to the next. All 0: without gaps.
    #[must_use]
    pub fn strides(mut self, strides: [usize; 3]) -> Self {
        self.view.strides = strides;
        self
    }
}

impl<T> HeadsMut<'_, T> {
    /// `len` elements at an address, in whatever memory.
    ///
    /// # Safety
    ///
    /// As of [`MatMut::from_raw`](crate::MatMut::from_raw), for `len` elements.
    pub unsafe fn from_raw(address: *mut T, len: usize) -> Self {
        View::new(address, len, Place::Unknown).into()
    }

    /// As [`HeadsRef::strides`]. No element may be in two places of the operand.
    #[must_use]
    pub fn strides(mut self, strides: [usize; 3]) -> Self {
        self.view.strides = strides;
        self
    }
}

impl<T> From<View<T>> for HeadsRef<'_, T> {
    fn from(view: View<T>) -> Self {
        let memory = PhantomData;
        HeadsRef { view, memory }
    }
}

impl<T> From<View<T>> for HeadsMut<'_, T> {
    fn from(view: View<T>) -> Self {
        let memory = PhantomData;
        HeadsMut { view, memory }
    }
}

impl<'a, T> From<&'a [T]> for HeadsRef<'a, T> {
    fn from(elements: &'a [T]) -> Self {
        View::new(elements.as_ptr().cast_mut(), elements.len(), Place::Host).into()
    }
}

impl<'a, T> From<&'a Vec<T>> for HeadsRef<'a, T> {
    fn from(elements: &'a Vec<T>) -> Self {
        elements.as_slice().into()
    }
}

impl<'a, T: Element> From<&'a Buffer<T>> for HeadsRef<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        View::new(buffer.as_ptr().cast_mut(), buffer.len(), buffer.place()).into()
    }
}

impl<'a, T> From<&'a mut [T]> for HeadsMut<'a, T> {
    fn from(elements: &'a mut [T]) -> Self {
        View::new(elements.as_mut_ptr(), elements.len(), Place::Host).into()
    }
}

impl<'a, T> From<&'a mut Vec<T>> for HeadsMut<'a, T> {
    fn from(elements: &'a mut Vec<T>) -> Self {
        elements.as_mut_slice().into()
    }
}

impl<'a, T: Element> From<&'a mut Buffer<T>> for HeadsMut<'a, T> {
    fn from(buffer: &'a mut Buffer<T>) -> Self {
        View::new(buffer.as_ptr().cast_mut(), buffer.len(), buffer.place()).into()
    }
}

/// Elements and how an operand lies in them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<T> {
    pub(crate) address: *mut T,
    pub(crate) strides: [usize; 3],
    len: usize,
    place: Place,
}

impl<T> View<T> {
    fn new(address: *mut T, len: usize, place: Place) -> View<T> {
        View {
            address,
            strides: [0; 3],
            len,
            place,
        }
    }

    /// Refuses what is not an operand of these extents in this memory. `distinct`: its elements do not overlap.
    pub(crate) fn check(&self, what: &str, extents: [usize; 4], place: Place, distinct: bool) -> Result<()> {
        let View { len, strides, .. } = *self;
        let gapless = strides == [0; 3];
        let fits = match span(extents, strides) {
            _ if gapless => product(&extents) == Some(len),
            Some(needed) => needed <= len,
            None => false,
        };
        if !fits || (distinct && !gapless && overlaps(extents, strides)) {
            let [batch, heads, rows, size] = extents;
            return Err(Error::Extent(format!(
                "{what} is (batch {batch}, heads {heads}, rows {rows}, size {size}), which does not fit into {len} elements \
                 with strides {strides:?}"
            )));
        }
        self.place.must_be(place, what)
    }
}

fn product(factors: &[usize]) -> Option<usize> {
    factors
        .iter()
        .try_fold(1usize, |product, factor| product.checked_mul(*factor))
}

/// How many elements there are from the first to the last.
fn span(extents: [usize; 4], strides: [usize; 3]) -> Option<usize> {
    if extents.contains(&0) {
        return Some(0);
    }
    let mut last = extents[3];
    for (extent, stride) in extents.into_iter().zip(strides) {
        last = last.checked_add((extent - 1).checked_mul(stride)?)?;
    }
    Some(last)
}

/// Whether strides, from the smallest on, step into what the smaller ones span.
fn overlaps(extents: [usize; 4], strides: [usize; 3]) -> bool {
    let [batch, heads, rows, size] = extents;
    let mut steps = [(strides[0], batch), (strides[1], heads), (strides[2], rows)];
    steps.sort();
    let mut spanned = size;
    for (stride, extent) in steps.into_iter().filter(|(_, extent)| *extent > 1) {
        if stride < spanned {
            return true;
        }
        spanned += (extent - 1) * stride;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_and_strides_are_checked() {
        let mut elements = [0f32; 48];
        let extents = [2, 3, 4, 2];
        for (strides, len, reads, writes) in [
            ([0; 3], 48, true, true),
            ([0; 3], 47, false, false),
            ([24, 8, 2], 48, true, true),
            ([24, 8, 2], 47, false, false),
            ([24, 2, 6], 48, true, true), // (batch, rows, heads, size)
            ([24, 2, 6], 47, false, false),
            ([0, 8, 2], 24, true, false), // one for all batches
            ([24, 8, 1], 48, true, false),
            ([usize::MAX, 8, 2], 48, false, false),
        ] {
            let read = HeadsRef::from(&elements[..len]).strides(strides);
            let read = read.view.check("K", extents, Place::Host, false);
            assert_eq!(read.is_ok(), reads, "{strides:?} in {len}");
            let written = HeadsMut::from(&mut elements[..len]).strides(strides);
            let written = written.view.check("O", extents, Place::Host, true);
            assert_eq!(written.is_ok(), writes, "{strides:?} in {len}");
        }
        let error = HeadsRef::from(&elements[..])
            .view
            .check("K", extents, Place::Device(1), false);
        assert!(matches!(error, Err(Error::Memory(text)) if text.contains("K is in memory of the host")));
    }
}
