// SPDX-License-Identifier: Apache-2.0

//! C = A B for an A of SciPy, of `float64`:
//!
//! ```text
//! scipy.sparse.save_npz("a.npz", a.tobsr()); numpy.save("b.npy", b)
//! unzip a.npz -d a
//! cargo run --release --example scipy -- a b.npy c.npy
//! c = numpy.load("c.npy")
//! ```

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use sparsek::{Bsr, Context, MatMut, MatRef, Matrix};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [a, b, c] = &arguments[..] else {
        return Err("arguments: the folder of A's arrays, the file of B, and the file to write C to".into());
    };
    multiply(a.as_ref(), b.as_ref(), c.as_ref())
}

fn multiply(a: &Path, b: &Path, c: &Path) -> Result<()> {
    let array = |name: &str| Array::read(&a.join(name));
    let (data, extents) = (array("data.npy")?, array("shape.npy")?.indices()?);
    let (&[blocks, bm, bk], &[rows, cols]) = (&data.shape[..], &extents[..]) else {
        return Err(format!("{} has no matrix in format BSR", a.display()).into());
    };
    let (row_ptr, col_idx) = (array("indptr.npy")?.indices()?, array("indices.npy")?.indices()?);
    let bsr = Bsr::new(rows.try_into()?, cols.try_into()?, (bm, bk), &row_ptr, &col_idx).sort();
    let matrix = Matrix::new(&Context::cpu()?, &bsr, data.floats()?)?;

    let dense = Array::read(b)?;
    let (&[k, n], elements) = (&dense.shape[..], dense.floats()?) else {
        return Err(format!("{} is no matrix", b.display()).into());
    };
    let from = match dense.column_major {
        false => MatRef::new(&elements, k, n)?,
        true => MatRef::new(&elements, n, k)?.transpose(),
    };
    let m = matrix.pattern().rows();
    let mut product = vec![0.0; m * n];
    matrix.multiply(from, MatMut::new(&mut product, m, n)?)?;
    println!("{m} x {k} with {blocks} blocks of {bm} x {bk}, times {k} x {n}");
    Ok(fs::write(
        c,
        npy("<f8", &[m, n], product.iter().map(|x| x.to_le_bytes())),
    )?)
}

/// A file of `numpy.save`.
struct Array {
    /// The type of the elements, as NumPy names it.
    descr: String,
    column_major: bool,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Array {
    fn read(path: &Path) -> Result<Array> {
        let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Array::parse(&bytes).ok_or_else(|| format!("{} is no file of numpy.save", path.display()).into())
    }

    fn parse(bytes: &[u8]) -> Option<Array> {
        // The version's first number says how long the length of the header is.
        let rest = bytes.strip_prefix(b"\x93NUMPY")?;
        let (length, rest) = match rest.first()? {
            1 => (u16::from_le_bytes(*rest.get(2..)?.first_chunk()?) as usize, &rest[4..]),
            _ => (u32::from_le_bytes(*rest.get(2..)?.first_chunk()?) as usize, &rest[6..]),
        };
        let (header, elements) = rest.split_at_checked(length)?;
        let header = str::from_utf8(header).ok()?;
        let entry = |name: &str, end: char| header.split_once(name)?.1.split(end).next();
        let extents = entry("'shape': (", ')')?.split(',').map(str::trim);
        Some(Array {
            descr: entry("'descr': '", '\'')?.to_owned(),
            column_major: entry("'fortran_order': ", ',')?.trim() == "True",
            shape: extents
                .filter(|extent| !extent.is_empty())
                .map(|extent| extent.parse().ok())
                .collect::<Option<_>>()?,
            bytes: elements.to_vec(),
        })
    }

    fn indices(&self) -> Result<Vec<i64>> {
        match &*self.descr {
            "<i4" => Ok(self.elements(|bytes| i32::from_le_bytes(bytes).into())),
            "<i8" => Ok(self.elements(i64::from_le_bytes)),
            other => Err(format!("indices of type {other}, not int32 or int64").into()),
        }
    }

    fn floats(&self) -> Result<Vec<f64>> {
        match &*self.descr {
            "<f8" => Ok(self.elements(f64::from_le_bytes)),
            other => Err(format!("elements of type {other}, not float64").into()),
        }
    }

    fn elements<T, const SIZE: usize>(&self, of: fn([u8; SIZE]) -> T) -> Vec<T> {
        let chunks = self.bytes.chunks_exact(SIZE);
        chunks
            .map(|chunk| of(chunk.try_into().expect("a chunk has its size")))
            .collect()
    }
}

/// The bytes of a row-major array as `numpy.load` reads them.
fn npy<const SIZE: usize>(descr: &str, shape: &[usize], elements: impl Iterator<Item = [u8; SIZE]>) -> Vec<u8> {
    let shape: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    // The elements begin at a multiple of 64 bytes.
    let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(format!("{header:<width$}\n", width = length - 1).bytes());
    bytes.extend(elements.flatten());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_numpy() {
        let header = "{'descr': '<i4', 'fortran_order': True, 'shape': (2,), }\n";
        for (version, length) in [(1, vec![57, 0]), (2, vec![57, 0, 0, 0])] {
            assert_eq!(header.len(), 57);
            let head = [b"\x93NUMPY", &[version, 0][..], &length, header.as_bytes()].concat();
            let array = Array::parse(&[&head, &[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff][..]].concat()).unwrap();
            assert_eq!((&array.shape[..], array.column_major), (&[2][..], true));
            assert_eq!(array.indices().unwrap(), [1, -1]);
            assert!(array.floats().unwrap_err().to_string().contains("<i4"));
            for end in 0..head.len() {
                assert!(Array::parse(&head[..end]).is_none(), "{end}");
            }
        }
    }

    #[test]
    fn a_product_of_files() {
        if let Err(error) = Context::cpu() {
            assert!(env::var_os("SPARSEK_LIBRARY").is_none(), "{error}");
            return;
        }
        let folder = env::temp_dir().join(format!("sparsek-scipy-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let ints = |shape: &[usize], elements: &[i32]| npy("<i4", shape, elements.iter().map(|x| x.to_le_bytes()));
        let floats = |shape: &[usize], elements: &[f64]| npy("<f8", shape, elements.iter().map(|x| x.to_le_bytes()));
        let mut b = floats(&[2, 3], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]); // by columns
        let place = b.windows(5).position(|part| part == b"False").unwrap();
        b[place..place + 5].copy_from_slice(b"True ");
        for (name, bytes) in [
            ("shape.npy", ints(&[2], &[2, 2])),
            ("indptr.npy", ints(&[3], &[0, 2, 3])),
            ("indices.npy", ints(&[3], &[1, 0, 1])), // not sorted
            ("data.npy", floats(&[3, 1, 1], &[10.0, 1.0, 100.0])),
            ("b.npy", b),
        ] {
            fs::write(folder.join(name), bytes).unwrap();
        }
        let result = multiply(&folder, &folder.join("b.npy"), &folder.join("c.npy"));
        let c = Array::read(&folder.join("c.npy"));
        fs::remove_dir_all(&folder).unwrap();
        result.unwrap();
        let c = c.unwrap();
        assert_eq!(c.shape, [2, 3]);
        assert_eq!(c.floats().unwrap(), [41.0, 52.0, 63.0, 400.0, 500.0, 600.0]);
    }
}
