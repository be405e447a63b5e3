// SPDX-License-Identifier: Apache-2.0

//! Layers that the Python package has written, by scripts/make_layer_testdata.py.

#![cfg(feature = "safetensors")]

use burn::tensor::{Device, Tensor, TensorData, Tolerance};
use burn_sparse::{BsrLinear, BsrTensor};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

const FILE: &[u8] = include_bytes!("../testdata/linear.safetensors");

fn library() -> bool {
    let error = burn_sparse::check().err();
    assert!(
        error.is_none() || std::env::var_os("SPARSEK_LIBRARY").is_none(),
        "{error:?}"
    );
    error.is_none()
}

fn data(name: &str) -> TensorData {
    let file = SafeTensors::deserialize(FILE).unwrap();
    let view = file.tensor(name).unwrap();
    let floats = view.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    TensorData::new(floats.collect::<Vec<f32>>(), view.shape().to_vec())
}

#[test]
fn a_layer_of_the_python_package() {
    if !library() {
        return;
    }
    let device = Device::flex();
    let layer = BsrLinear::from_safetensors(FILE, "layer.", 24, &device).unwrap();
    assert_eq!((layer.pattern().shape(), layer.pattern().block()), ([16, 24], [4, 8]));
    let y = layer.forward(Tensor::<2>::from_data(data("x"), &device));
    y.into_data()
        .assert_approx_eq::<f32>(&data("y"), Tolerance::absolute(1e-6));
    let weight = BsrTensor::from_safetensors(FILE, "layer.", 24, &device).unwrap();
    assert_eq!(weight.to_dense().into_data(), layer.weight().to_dense().into_data());
}

/// The file with the tensors of `change` in place of those of these names, or without them.
fn changed(change: &[(&str, Option<TensorView<'_>>)]) -> Vec<u8> {
    let file = SafeTensors::deserialize(FILE).unwrap();
    let kept = file
        .tensors()
        .into_iter()
        .filter(|(name, _)| change.iter().all(|(changed, _)| changed != name));
    let new = change
        .iter()
        .filter_map(|(name, view)| Some(((*name).to_owned(), view.clone()?)));
    safetensors::serialize(kept.chain(new), None).unwrap()
}

#[test]
fn a_layer_without_bias_and_with_wide_indices() {
    let columns: Vec<u8> = {
        let file = SafeTensors::deserialize(FILE).unwrap();
        let narrow = file.tensor("layer.col").unwrap();
        let wide = narrow
            .data()
            .as_chunks()
            .0
            .iter()
            .map(|bytes| i64::from(i32::from_le_bytes(*bytes)));
        wide.flat_map(i64::to_le_bytes).collect()
    };
    let wide = TensorView::new(Dtype::I64, vec![6], &columns).unwrap();
    let file = changed(&[("layer.bias", None), ("layer.col", Some(wide))]);
    let device = Device::flex();
    let layer = BsrLinear::from_safetensors(&file, "layer.", 24, &device).unwrap();
    assert!(layer.bias.is_none());
    let whole = BsrLinear::from_safetensors(FILE, "layer.", 24, &device).unwrap();
    assert_eq!(layer.pattern().col_idx(), whole.pattern().col_idx());
}

#[test]
fn what_does_not_fit_is_an_error() {
    let says = |file: &[u8], prefix: &str, inputs: usize| {
        let result = BsrLinear::from_safetensors(file, prefix, inputs, &Device::flex());
        result.unwrap_err().to_string()
    };
    assert!(!says(b"no such file", "layer.", 24).is_empty());
    assert!(says(FILE, "other.", 24).contains("other.values"));
    assert!(says(FILE, "layer.", 23).contains("no multiple"));
    assert!(says(FILE, "layer.", 8).contains("not below 1 block columns"));
    let zeros = [0u8; 4 * 4 * 8 * 6];
    let of = |dtype: Dtype, shape: &[usize]| {
        let bytes = shape.iter().product::<usize>() * dtype.bitsize() / 8;
        Some(TensorView::new(dtype, shape.to_vec(), &zeros[..bytes]).unwrap())
    };
    for (name, tensor, what) in [
        ("layer.values", of(Dtype::F32, &[6, 32]), "not (blocks, bm, bk)"),
        ("layer.values", of(Dtype::I32, &[6, 4, 8]), "is of I32"),
        ("layer.values", of(Dtype::F32, &[5, 4, 8]), "has 5 blocks"),
        (
            "layer.crow",
            of(Dtype::I32, &[5]),
            "row_ptr does not go from 0 to the 6 blocks",
        ),
        ("layer.crow", of(Dtype::F32, &[5]), "is of F32, not of I32"),
        ("layer.col", of(Dtype::I32, &[6]), "do not increase"),
        ("layer.bias", of(Dtype::F32, &[15]), "layer.bias is of [15]"),
    ] {
        let text = says(&changed(&[(name, tensor)]), "layer.", 24);
        assert!(text.contains(what), "{name}: {text}");
    }
}
