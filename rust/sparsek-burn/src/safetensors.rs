// SPDX-License-Identifier: Apache-2.0

//! What the Python package has written: the state dicts of its layers.

use std::fmt;

use burn::tensor::{Bytes, DType, Device, Tensor, TensorData};
use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorView};

use crate::{BsrLinear, BsrPattern, BsrTensor};

/// Why a file has no layer.
#[derive(Debug)]
#[non_exhaustive]
pub enum SafetensorsError {
    /// It is no file of safetensors, or has no tensor of that name.
    File(SafeTensorError),
    /// Its tensors do not fit each other, or the inputs.
    Layout(String),
}

impl fmt::Display for SafetensorsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SafetensorsError::File(error) => write!(f, "{error}"),
            SafetensorsError::Layout(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for SafetensorsError {}

impl From<SafeTensorError> for SafetensorsError {
    fn from(error: SafeTensorError) -> Self {
        SafetensorsError::File(error)
    }
}

impl BsrTensor {
    /// The weight of a layer `BsrLinear` of the Python package, of (outputs, inputs): `file` is what safetensors wrote of a
    /// state dict, `prefix` what stands before the names `values`, `crow` and `col` in it, such as "encoder.0.". Outputs and
    /// inputs are multiples of the block's sides.
    ///
    /// # Errors
    ///
    /// Where the bytes are no such file, a tensor is missing, or those that there are do not fit each other.
    pub fn from_safetensors(
        file: &[u8],
        prefix: &str,
        inputs: usize,
        device: &Device,
    ) -> Result<BsrTensor, SafetensorsError> {
        let file = SafeTensors::deserialize(file)?;
        weight(&file, prefix, inputs, device)
    }
}

impl BsrLinear {
    /// A layer `BsrLinear` of the Python package, as [`BsrTensor::from_safetensors`], with its bias if it has one. An
    /// activation of the layer is no part of a state dict.
    ///
    /// # Errors
    ///
    /// As [`BsrTensor::from_safetensors`].
    pub fn from_safetensors(
        file: &[u8],
        prefix: &str,
        inputs: usize,
        device: &Device,
    ) -> Result<BsrLinear, SafetensorsError> {
        let file = SafeTensors::deserialize(file)?;
        let weight = weight(&file, prefix, inputs, device)?;
        let name = format!("{prefix}bias");
        let bias = match file.tensor(&name) {
            Ok(view) => Some(view),
            Err(SafeTensorError::TensorNotFound(_)) => None,
            Err(error) => return Err(error.into()),
        };
        if let Some(view) = bias
            .as_ref()
            .filter(|view| view.shape() != &weight.pattern().shape()[..1])
        {
            let (shape, [outputs, _]) = (view.shape(), weight.pattern().shape());
            return Err(SafetensorsError::Layout(format!(
                "{name} is of {shape:?}, and crow and the blocks of {outputs} outputs: outputs are a multiple of the block's"
            )));
        }
        let bias = bias.map(|view| Ok::<_, SafetensorsError>(Tensor::from_data(floats(&name, &view)?, device)));
        Ok(BsrLinear::of_weight(weight, bias.transpose()?))
    }
}

fn weight(file: &SafeTensors<'_>, prefix: &str, inputs: usize, device: &Device) -> Result<BsrTensor, SafetensorsError> {
    let name = format!("{prefix}values");
    let values = file.tensor(&name)?;
    let &[blocks, bm, bk] = values.shape() else {
        let shape = values.shape();
        return Err(SafetensorsError::Layout(format!(
            "{name} is of {shape:?}, not (blocks, bm, bk)"
        )));
    };
    let (crow, col) = (
        indices(file, &format!("{prefix}crow"))?,
        indices(file, &format!("{prefix}col"))?,
    );
    if col.len() != blocks {
        let columns = col.len();
        return Err(SafetensorsError::Layout(format!(
            "{name} has {blocks} blocks, and {prefix}col {columns}"
        )));
    }
    let outputs = crow.len().saturating_sub(1).saturating_mul(bm);
    let pattern = BsrPattern::checked(outputs, inputs, [bm, bk], crow, col);
    let pattern = pattern.map_err(|fault| SafetensorsError::Layout(format!("{name}: {fault}")))?;
    Ok(BsrTensor::new(
        pattern,
        Tensor::from_data(floats(&name, &values)?, device),
    ))
}

/// Data of the type that the file has.
fn floats(name: &str, view: &TensorView<'_>) -> Result<TensorData, SafetensorsError> {
    let dtype = match view.dtype() {
        Dtype::F32 => DType::F32,
        Dtype::F64 => DType::F64,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
        other => {
            return Err(SafetensorsError::Layout(format!(
                "{name} is of {other:?}, not of F32, F64, F16 or BF16"
            )));
        }
    };
    let bytes = Bytes::from_bytes_vec(view.data().to_vec());
    Ok(TensorData::from_bytes(bytes, view.shape().to_vec(), dtype))
}

fn indices(file: &SafeTensors<'_>, name: &str) -> Result<Vec<i32>, SafetensorsError> {
    let view = file.tensor(name)?;
    let wrong = |what: String| SafetensorsError::Layout(format!("{name} {what}"));
    let wide: Vec<i64> = match view.dtype() {
        Dtype::I32 => elements(view.data(), |bytes| i32::from_le_bytes(bytes).into()),
        Dtype::I64 => elements(view.data(), i64::from_le_bytes),
        other => return Err(wrong(format!("is of {other:?}, not of I32 or I64"))),
    };
    let narrow: Result<Vec<i32>, _> = wide.into_iter().map(i32::try_from).collect();
    narrow.map_err(|_| wrong("has elements that no block has".to_owned()))
}

fn elements<T, const SIZE: usize>(bytes: &[u8], of: fn([u8; SIZE]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|element| of(*element)).collect()
}
