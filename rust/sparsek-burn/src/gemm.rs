// SPDX-License-Identifier: Apache-2.0

use std::time::Duration;

use burn::tensor::Tensor;

use crate::BsrTensor;

/// How a [`BsrGemm`] multiplies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BsrGemmConfig {
    tuning: Option<Duration>,
}

impl BsrGemmConfig {
    /// The kernel that a measurement or the cost model chooses.
    pub fn new() -> BsrGemmConfig {
        BsrGemmConfig::default()
    }

    /// Measures kernels for about this long, once for each pattern, number of columns and type, unless a similar product
    /// was measured before. That is for A B: the kernels of gradients, and of [`BsrTensor::linear`], are those of the cost
    /// model, or of a similar product that was measured.
    #[must_use]
    pub fn with_tuning(mut self, time: Duration) -> BsrGemmConfig {
        self.tuning = Some(time);
        self
    }
}

/// Products of block-sparse with dense matrices.
#[derive(Clone, Debug, Default)]
pub struct BsrGemm {
    config: BsrGemmConfig,
}

impl BsrGemm {
    /// How long [`BsrGemm::auto_tuned`] measures where the configuration says nothing.
    pub const TUNING: Duration = Duration::from_millis(50);

    /// Products of this configuration.
    pub fn new(config: BsrGemmConfig) -> BsrGemm {
        BsrGemm { config }
    }

    /// A B, of (M, n), by the kernel that was measured to be the fastest: the first product of a pattern with n columns
    /// measures, for about [`BsrGemm::TUNING`] or what the configuration says. What it finds is kept, in a file too.
    ///
    /// # Panics
    ///
    /// As [`BsrTensor::matmul`].
    pub fn auto_tuned(a: BsrTensor, b: Tensor<2>, config: BsrGemmConfig) -> Tensor<2> {
        a.multiply(b, config.tuning.unwrap_or(Self::TUNING))
    }

    /// A B, of (M, n). Gradients go to A's values and to B.
    ///
    /// # Panics
    ///
    /// As [`BsrTensor::matmul`].
    pub fn forward(&self, a: &BsrTensor, b: Tensor<2>) -> Tensor<2> {
        a.multiply(b, self.config.tuning.unwrap_or_default())
    }
}
