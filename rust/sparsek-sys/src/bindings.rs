// SPDX-License-Identifier: Apache-2.0
// Generated from cutlass_ext/include/sparsek.h; changes here are lost.

use core::ffi::{c_char, c_void};

pub const SPARSEK_ABI_VERSION: i32 = 1;

#[repr(C)]
#[derive(Debug)]
pub struct sparsek_context {
    _opaque: crate::Opaque,
}

#[repr(C)]
#[derive(Debug)]
pub struct sparsek_matrix {
    _opaque: crate::Opaque,
}

#[repr(C)]
#[derive(Debug)]
pub struct sparsek_plan {
    _opaque: crate::Opaque,
}

#[repr(C)]
#[derive(Debug)]
pub struct sparsek_tuner {
    _opaque: crate::Opaque,
}

#[repr(C)]
#[derive(Debug)]
pub struct sparsek_attention {
    _opaque: crate::Opaque,
}

#[repr(C)]
#[derive(Debug)]
pub struct sparsek_tuning_cache {
    _opaque: crate::Opaque,
}

#[repr(C)]
#[derive(Debug)]
pub struct sparsek_sm_hold {
    _opaque: crate::Opaque,
}

pub type sparsek_stream = *mut c_void;

pub type sparsek_status = i32;
pub const SPARSEK_OK: sparsek_status = 0;
pub const SPARSEK_NULL_POINTER: sparsek_status = 1;
pub const SPARSEK_BAD_ABI_SIZE: sparsek_status = 2;
pub const SPARSEK_BAD_SIZE: sparsek_status = 3;
pub const SPARSEK_BAD_ARGUMENT: sparsek_status = 4;
pub const SPARSEK_BAD_LEADING_DIMENSION: sparsek_status = 5;
pub const SPARSEK_MISALIGNED: sparsek_status = 6;
pub const SPARSEK_WRONG_MEMORY: sparsek_status = 7;
pub const SPARSEK_ROW_PTR_START: sparsek_status = 10;
pub const SPARSEK_ROW_PTR_NOT_MONOTONE: sparsek_status = 11;
pub const SPARSEK_ROW_PTR_END: sparsek_status = 12;
pub const SPARSEK_COL_IDX_RANGE: sparsek_status = 13;
pub const SPARSEK_COL_IDX_UNSORTED: sparsek_status = 14;
pub const SPARSEK_COL_IDX_REPEATED: sparsek_status = 15;
pub const SPARSEK_BLOCK_IDX_RANGE: sparsek_status = 16;
pub const SPARSEK_OVER_CAPACITY: sparsek_status = 17;
pub const SPARSEK_UNSUPPORTED_DTYPE: sparsek_status = 20;
pub const SPARSEK_UNSUPPORTED_BLOCK: sparsek_status = 21;
pub const SPARSEK_NO_SUCH_KERNEL: sparsek_status = 22;
pub const SPARSEK_NO_DEVICE: sparsek_status = 23;
pub const SPARSEK_NO_LIBRARY: sparsek_status = 24;
pub const SPARSEK_OUT_OF_MEMORY: sparsek_status = 30;
pub const SPARSEK_CUDA_ERROR: sparsek_status = 31;
pub const SPARSEK_INTERNAL: sparsek_status = 32;
pub const SPARSEK_IO_ERROR: sparsek_status = 33;
pub const SPARSEK_CHECK_FAILED: sparsek_status = 40;
pub const SPARSEK_NOT_READY: sparsek_status = 50;

pub type sparsek_dtype = i32;
pub const SPARSEK_BF16: sparsek_dtype = 1;
pub const SPARSEK_FP16: sparsek_dtype = 2;
pub const SPARSEK_FP32: sparsek_dtype = 3;
pub const SPARSEK_FP64: sparsek_dtype = 4;
pub const SPARSEK_E4M3: sparsek_dtype = 5;

pub type sparsek_index_type = i32;
pub const SPARSEK_INT32: sparsek_index_type = 1;
pub const SPARSEK_INT64: sparsek_index_type = 2;
pub const SPARSEK_INT16: sparsek_index_type = 3;

pub type sparsek_memory = i32;
pub const SPARSEK_HOST: sparsek_memory = 1;
pub const SPARSEK_DEVICE: sparsek_memory = 2;

pub type sparsek_backend = i32;
pub const SPARSEK_AUTO: sparsek_backend = 0;
pub const SPARSEK_CPU: sparsek_backend = 1;
pub const SPARSEK_CUDA: sparsek_backend = 2;

pub type sparsek_bias = i32;
pub const SPARSEK_BIAS_NONE: sparsek_bias = 0;
pub const SPARSEK_BIAS_ROW: sparsek_bias = 1;
pub const SPARSEK_BIAS_COLUMN: sparsek_bias = 2;

pub type sparsek_activation = i32;
pub const SPARSEK_ACTIVATION_NONE: sparsek_activation = 0;
pub const SPARSEK_ACTIVATION_RELU: sparsek_activation = 1;
pub const SPARSEK_ACTIVATION_GELU: sparsek_activation = 2;
pub const SPARSEK_ACTIVATION_SILU: sparsek_activation = 3;

pub type sparsek_op = i32;
pub const SPARSEK_DSD: sparsek_op = 0;
pub const SPARSEK_DSD_T: sparsek_op = 1;
pub const SPARSEK_SDD: sparsek_op = 2;
pub const SPARSEK_DDS: sparsek_op = 3;
pub const SPARSEK_DDS_T: sparsek_op = 4;

pub type sparsek_order = i32;
pub const SPARSEK_ROW_MAJOR: sparsek_order = 0;
pub const SPARSEK_COLUMN_MAJOR: sparsek_order = 1;

pub type sparsek_copies = i32;
pub const SPARSEK_COPIES_B: sparsek_copies = 1;
pub const SPARSEK_COPIES_C: sparsek_copies = 2;
pub const SPARSEK_COPIES_A: sparsek_copies = 4;

pub type sparsek_compute = i32;
pub const SPARSEK_COMPUTE_EXACT: sparsek_compute = 0;
pub const SPARSEK_COMPUTE_TF32: sparsek_compute = 1;

pub type sparsek_bsr_flag = i32;
pub const SPARSEK_BSR_SORT: sparsek_bsr_flag = 1;
pub const SPARSEK_BSR_ASYNC: sparsek_bsr_flag = 2;
pub const SPARSEK_BSR_BOUND: sparsek_bsr_flag = 4;
pub const SPARSEK_BSR_FROZEN: sparsek_bsr_flag = 8;

pub type sparsek_plan_flag = i32;
pub const SPARSEK_OWN_KERNELS: sparsek_plan_flag = 1;
pub const SPARSEK_NO_USER_CACHE: sparsek_plan_flag = 2;
pub const SPARSEK_BATCH_INVARIANT: sparsek_plan_flag = 4;

pub type sparsek_multiply_flag = i32;
pub const SPARSEK_TRUSTED: sparsek_multiply_flag = 1;

pub type sparsek_chosen_by = i32;
pub const SPARSEK_CHOSEN_BY_NAME: sparsek_chosen_by = 1;
pub const SPARSEK_CHOSEN_BY_MODEL: sparsek_chosen_by = 2;
pub const SPARSEK_CHOSEN_BY_CACHE: sparsek_chosen_by = 3;
pub const SPARSEK_CHOSEN_BY_TABLE: sparsek_chosen_by = 4;
pub const SPARSEK_CHOSEN_BY_TUNING: sparsek_chosen_by = 5;

pub type sparsek_tuning_source = i32;
pub const SPARSEK_TUNING_FILE: sparsek_tuning_source = 0;
pub const SPARSEK_TUNING_SHIPPED: sparsek_tuning_source = 1;

pub type sparsek_tuning_state = i32;
pub const SPARSEK_TUNING_ABSENT: sparsek_tuning_state = 0;
pub const SPARSEK_TUNING_WHOLE: sparsek_tuning_state = 1;
pub const SPARSEK_TUNING_DAMAGED: sparsek_tuning_state = 2;
pub const SPARSEK_TUNING_FOREIGN: sparsek_tuning_state = 3;
pub const SPARSEK_TUNING_UNREADABLE: sparsek_tuning_state = 4;

pub type sparsek_pattern_flag = i32;
pub const SPARSEK_PATTERN_BITS: sparsek_pattern_flag = 1;

pub type sparsek_norm = i32;
pub const SPARSEK_NORM_MAX: sparsek_norm = 0;
pub const SPARSEK_NORM_L1: sparsek_norm = 1;
pub const SPARSEK_NORM_L2: sparsek_norm = 2;

pub type sparsek_attention_flag = i32;
pub const SPARSEK_ATTENTION_RIGHT: sparsek_attention_flag = 1;
pub const SPARSEK_ATTENTION_LEFT: sparsek_attention_flag = 2;
pub const SPARSEK_ATTENTION_ALIGN_ENDS: sparsek_attention_flag = 4;
pub const SPARSEK_ATTENTION_ANY_ORDER: sparsek_attention_flag = 8;

pub type sparsek_attention_output = i32;
pub const SPARSEK_ATTENTION_O: sparsek_attention_output = 0;
pub const SPARSEK_ATTENTION_LSE: sparsek_attention_output = 1;
pub const SPARSEK_ATTENTION_GRAD_Q: sparsek_attention_output = 2;
pub const SPARSEK_ATTENTION_GRAD_K: sparsek_attention_output = 3;
pub const SPARSEK_ATTENTION_GRAD_V: sparsek_attention_output = 4;
pub const SPARSEK_ATTENTION_MASS: sparsek_attention_output = 5;
pub const SPARSEK_ATTENTION_GRAD_BIAS: sparsek_attention_output = 6;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_build_info {
    pub abi_size: usize,
    pub version: *const c_char,
    pub cutlass: *const c_char,
    pub cuda: *const c_char,
    pub compiler: *const c_char,
    pub commit: *const c_char,
}

crate::versioned!(sparsek_build_info);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_kernel_info {
    pub abi_size: usize,
    pub name: *const c_char,
    pub why: *const c_char,
    pub backend: i32,
    pub dtype: i32,
    pub tile_m: i32,
    pub tile_n: i32,
    pub tile_k: i32,
    pub stages: i32,
    pub block_m: i32,
    pub block_m_multiple: i32,
    pub block_k_multiple: i32,
    pub baseline: i32,
    pub library: *const c_char,
    pub reads_absent: i32,
    pub reserved: i32,
    pub dtype_b: i32,
    pub reserved2: i32,
}

crate::versioned!(sparsek_kernel_info);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_device_info {
    pub abi_size: usize,
    pub name: [c_char; 256],
    pub compute_major: i32,
    pub compute_minor: i32,
    pub sm_count: i32,
    pub memory_bytes: i64,
    pub l2_bytes: i64,
    pub driver_version: i32,
    pub usable: i32,
    pub clock_hz: i64,
}

crate::versioned!(sparsek_device_info);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_context_options {
    pub abi_size: usize,
    pub backend: i32,
    pub device: i32,
    pub threads: i32,
    pub allocate: Option<unsafe extern "C" fn(user: *mut c_void, bytes: usize, device: i32, stream: sparsek_stream) -> *mut c_void>,
    pub release: Option<unsafe extern "C" fn(user: *mut c_void, memory: *mut c_void, bytes: usize, device: i32, stream: sparsek_stream)>,
    pub user: *mut c_void,
}

crate::versioned!(sparsek_context_options);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_context_info {
    pub abi_size: usize,
    pub backend: i32,
    pub device: i32,
    pub threads: i32,
    pub gpu_fault: i32,
    pub reason: *const c_char,
    pub isa: *const c_char,
}

crate::versioned!(sparsek_context_info);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_bsr {
    pub abi_size: usize,
    pub rows: i64,
    pub cols: i64,
    pub block_m: i64,
    pub block_k: i64,
    pub nnzb: i64,
    pub dtype: i32,
    pub index_type: i32,
    pub memory: i32,
    pub reserved: i32,
    pub row_ptr: *const c_void,
    pub col_idx: *const c_void,
    pub values: *const c_void,
    pub block_idx: *const c_void,
    pub stream: sparsek_stream,
    pub flags: i32,
    pub reserved2: i32,
}

crate::versioned!(sparsek_bsr);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_plan_options {
    pub abi_size: usize,
    pub n: i64,
    pub ldb: i64,
    pub ldc: i64,
    pub alignment: i32,
    pub reserved: i32,
    pub kernel: *const c_char,
    pub dtype_c: i32,
    pub bias: i32,
    pub activation: i32,
    pub reserved2: i32,
    pub allow_dense: i32,
    pub reserved3: i32,
    pub tuning_seconds: f64,
    pub op: i32,
    pub order_b: i32,
    pub order_c: i32,
    pub compute: i32,
    pub flags: i32,
    pub workers: i32,
    pub values_static: i32,
    pub alignment_c: i32,
    pub ldx: i64,
    pub order_x: i32,
    pub reserved5: i32,
    pub dtype_b: i32,
    pub reserved4: i32,
}

crate::versioned!(sparsek_plan_options);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_plan_info {
    pub abi_size: usize,
    pub kernel: *const c_char,
    pub reason: *const c_char,
    pub tile_m: i32,
    pub tile_n: i32,
    pub tile_k: i32,
    pub stages: i32,
    pub tiles: i64,
    pub entries: i64,
    pub workspace_bytes: i64,
    pub unit_roundoff: f64,
    pub recomputed: i64,
    pub chosen_by: i32,
    pub reserved: i32,
    pub predicted_seconds: f64,
    pub measured_seconds: f64,
    pub warning: *const c_char,
    pub digest: u64,
    pub product_bytes: i64,
    pub product_roundoff: f64,
    pub copies: i32,
    pub reserved2: i32,
    pub kept_bytes: i64,
}

crate::versioned!(sparsek_plan_info);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_tuner_options {
    pub abi_size: usize,
    pub seconds: f64,
    pub all: i32,
    pub reserved: i32,
}

crate::versioned!(sparsek_tuner_options);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_candidate_info {
    pub abi_size: usize,
    pub kernel: *const c_char,
    pub note: *const c_char,
    pub serves: i32,
    pub best: i32,
    pub runs: i32,
    pub reserved: i32,
    pub predicted_seconds: f64,
    pub seconds: f64,
    pub spread: f64,
    pub setup_seconds: f64,
}

crate::versioned!(sparsek_candidate_info);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_multiply_args {
    pub abi_size: usize,
    pub alpha: f32,
    pub beta: f32,
    pub b: *const c_void,
    pub ldb: i64,
    pub c: *mut c_void,
    pub ldc: i64,
    pub stream: sparsek_stream,
    pub bias: *const c_void,
    pub values: *const c_void,
    pub n: i64,
    pub c_in: *const c_void,
    pub ldc_in: i64,
    pub alpha_device: *const f32,
    pub beta_device: *const f32,
    pub workspace: *mut c_void,
    pub workspace_bytes: usize,
    pub bytes_b: i64,
    pub bytes_c: i64,
    pub dtype_b: i32,
    pub flags: i32,
    pub batch: i32,
    pub reserved: i32,
    pub stride_b: i64,
    pub stride_c: i64,
    pub stride_values: i64,
    pub stride_bias: i64,
    pub x: *const c_void,
    pub ldx: i64,
    pub bytes_x: i64,
    pub stride_x: i64,
}

crate::versioned!(sparsek_multiply_args);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_plan_layout {
    pub abi_size: usize,
    pub bytes: i64,
    pub workspace_bytes: i64,
    pub alignment: i32,
    pub reserved: i32,
    pub header: [u64; 48],
}

crate::versioned!(sparsek_plan_layout);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_pattern_args {
    pub abi_size: usize,
    pub rows: i64,
    pub cols: i64,
    pub block_m: i64,
    pub block_k: i64,
    pub capacity: i64,
    pub dtype: i32,
    pub index_type: i32,
    pub memory: i32,
    pub flags: i32,
    pub row_ptr: *mut c_void,
    pub col_idx: *mut c_void,
    pub values: *mut c_void,
    pub block_idx: *mut c_void,
    pub row_idx: *mut c_void,
    pub blocks: *mut i64,
    pub fault: *mut i64,
    pub stream: sparsek_stream,
    pub source: *const c_void,
    pub ld: i64,
    pub source_dtype: i32,
    pub source_index_type: i32,
    pub order: i32,
    pub norm: i32,
    pub threshold: f64,
    pub count: i64,
    pub norms: *mut c_void,
    pub bins: *mut c_void,
}

crate::versioned!(sparsek_pattern_args);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_values_args {
    pub abi_size: usize,
    pub a: *const sparsek_bsr,
    pub out: *mut c_void,
    pub b: *const c_void,
    pub ld: i64,
    pub order: i32,
    pub norm: i32,
    pub transposed: i32,
    pub reserved: i32,
    pub row_factors: *const c_void,
    pub column_factors: *const c_void,
    pub alpha: f64,
    pub beta: f64,
}

crate::versioned!(sparsek_values_args);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_attention_options {
    pub abi_size: usize,
    pub batch: i64,
    pub heads_q: i64,
    pub heads_k: i64,
    pub seq_q: i64,
    pub seq_k: i64,
    pub head_size: i64,
    pub head_size_v: i64,
    pub layout: *const sparsek_bsr,
    pub layout_batch: i64,
    pub layout_heads: i64,
    pub window_left: i64,
    pub window_right: i64,
    pub scale: f64,
    pub soft_cap: f64,
    pub dtype: i32,
    pub flags: i32,
    pub kernel: *const c_char,
    pub workers: i32,
    pub reserved: i32,
    pub dtype_o: i32,
    pub reserved2: i32,
}

crate::versioned!(sparsek_attention_options);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_attention_info {
    pub abi_size: usize,
    pub kernel: *const c_char,
    pub backward: *const c_char,
    pub blocks: i64,
    pub partial: i64,
    pub pairs: i64,
    pub forward_bytes: i64,
    pub backward_bytes: i64,
    pub unit_roundoff: f64,
    pub product_roundoff: f64,
}

crate::versioned!(sparsek_attention_info);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_attention_args {
    pub abi_size: usize,
    pub q: *const c_void,
    pub k: *const c_void,
    pub v: *const c_void,
    pub o: *mut c_void,
    pub lse: *mut c_void,
    pub stride_q: [i64; 3],
    pub stride_k: [i64; 3],
    pub stride_v: [i64; 3],
    pub stride_o: [i64; 3],
    pub lengths_q: *const i32,
    pub lengths_k: *const i32,
    pub stream: sparsek_stream,
    pub workspace: *mut c_void,
    pub workspace_bytes: usize,
    pub grad_o: *const c_void,
    pub grad_q: *mut c_void,
    pub grad_k: *mut c_void,
    pub grad_v: *mut c_void,
    pub stride_grad_o: [i64; 3],
    pub stride_grad_q: [i64; 3],
    pub stride_grad_k: [i64; 3],
    pub stride_grad_v: [i64; 3],
    pub mass: *mut c_void,
    pub bias: *const c_void,
    pub stride_bias: [i64; 4],
    pub mask: *const u32,
    pub mask_index: *const i32,
    pub mask_blocks: i64,
    pub bias_dtype: i32,
    pub reserved: i32,
    pub grad_bias: *mut c_void,
    pub page_table: *const i32,
    pub page_table_stride: i64,
    pub pages: i64,
    pub page_rows: i64,
    pub scale_q: *const f32,
    pub scale_k: *const f32,
    pub scale_v: *const f32,
}

crate::versioned!(sparsek_attention_args);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_attention_check_args {
    pub abi_size: usize,
    pub options: *const sparsek_attention_options,
    pub args: *const sparsek_attention_args,
    pub unit_roundoff: f64,
    pub product_roundoff: f64,
    pub output: i32,
    pub threads: i32,
}

crate::versioned!(sparsek_attention_check_args);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_pool_args {
    pub abi_size: usize,
    pub batch: i64,
    pub heads: i64,
    pub seq: i64,
    pub head_size: i64,
    pub block: i64,
    pub x: *const c_void,
    pub stride_x: [i64; 3],
    pub out: *mut c_void,
    pub dtype: i32,
    pub memory: i32,
    pub stream: sparsek_stream,
}

crate::versioned!(sparsek_pool_args);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_dense_time_args {
    pub abi_size: usize,
    pub m: i64,
    pub n: i64,
    pub k: i64,
    pub dtype: i32,
    pub set_count: i32,
    pub a: *const *const c_void,
    pub b: *const *const c_void,
    pub c: *const *mut c_void,
    pub warmup: i32,
    pub repeats: i32,
    pub stream: sparsek_stream,
}

crate::versioned!(sparsek_dense_time_args);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_check_args {
    pub abi_size: usize,
    pub a: *const sparsek_bsr,
    pub n: i64,
    pub b: *const c_void,
    pub ldb: i64,
    pub c0: *const c_void,
    pub c: *const c_void,
    pub ldc: i64,
    pub alpha: f32,
    pub beta: f32,
    pub unit_roundoff: f64,
    pub threads: i32,
    pub reserved: i32,
    pub dtype_c: i32,
    pub bias_kind: i32,
    pub activation: i32,
    pub reserved2: i32,
    pub bias: *const c_void,
    pub product_roundoff: f64,
    pub op: i32,
    pub order_b: i32,
    pub order_c: i32,
    pub order_x: i32,
    pub x: *const c_void,
    pub ldx: i64,
    pub dtype_b: i32,
    pub reserved3: i32,
}

crate::versioned!(sparsek_check_args);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_check_report {
    pub abi_size: usize,
    pub elements: i64,
    pub failures: i64,
    pub max_abs_c: f64,
    pub max_error: f64,
    pub max_ratio: f64,
    pub worst_row: i64,
    pub worst_col: i64,
    pub worst_c: f64,
    pub worst_ref: f64,
    pub worst_bound: f64,
    pub first_row: i64,
    pub first_col: i64,
}

crate::versioned!(sparsek_check_report);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_tuning_cache_info {
    pub abi_size: usize,
    pub path: *const c_char,
    pub fault: *const c_char,
    pub build: *const c_char,
    pub entries: i64,
    pub state: i32,
    pub reserved: i32,
}

crate::versioned!(sparsek_tuning_cache_info);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_tuning_entry {
    pub abi_size: usize,
    pub id: *const c_char,
    pub device: *const c_char,
    pub build: *const c_char,
    pub op: *const c_char,
    pub m: i64,
    pub n: i64,
    pub k: i64,
    pub block_m: i64,
    pub block_k: i64,
    pub measured: i64,
    pub sm_count: i32,
    pub dtype: i32,
    pub dtype_c: i32,
    pub bias: i32,
    pub activation: i32,
    pub density_class: i32,
    pub spread_class: i32,
    pub union_class: i32,
    pub candidates: i32,
    pub reserved: i32,
    pub dtype_b: i32,
    pub kept_values: i32,
}

crate::versioned!(sparsek_tuning_entry);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_tuning_candidate {
    pub abi_size: usize,
    pub kernel: *const c_char,
    pub seconds: f64,
    pub spread: f64,
    pub setup_seconds: f64,
}

crate::versioned!(sparsek_tuning_candidate);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_tuning_change {
    pub abi_size: usize,
    pub entries: i64,
    pub warning: [c_char; 1024],
}

crate::versioned!(sparsek_tuning_change);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sparsek_api {
    pub abi_size: usize,
    pub abi_version: i32,
    pub status_name: unsafe extern "C" fn(sparsek_status) -> *const c_char,
    pub last_error: unsafe extern "C" fn() -> *const c_char,
    pub build_info: unsafe extern "C" fn(out: *mut sparsek_build_info) -> sparsek_status,
    pub kernel_count: unsafe extern "C" fn() -> i32,
    pub kernel_info: unsafe extern "C" fn(index: i32, out: *mut sparsek_kernel_info) -> sparsek_status,
    pub device_count: unsafe extern "C" fn() -> i32,
    pub device_info: unsafe extern "C" fn(device: i32, out: *mut sparsek_device_info) -> sparsek_status,
    pub context_create: unsafe extern "C" fn(options: *const sparsek_context_options, out: *mut *mut sparsek_context) -> sparsek_status,
    pub context_info: unsafe extern "C" fn(*const sparsek_context, out: *mut sparsek_context_info) -> sparsek_status,
    pub context_destroy: unsafe extern "C" fn(*mut sparsek_context),
    pub matrix_create: unsafe extern "C" fn(*mut sparsek_context, *const sparsek_bsr, out: *mut *mut sparsek_matrix) -> sparsek_status,
    pub matrix_set_values: unsafe extern "C" fn(*mut sparsek_matrix, values: *const c_void, memory: i32, sparsek_stream) -> sparsek_status,
    pub matrix_destroy: unsafe extern "C" fn(*mut sparsek_matrix),
    pub plan_create: unsafe extern "C" fn(*mut sparsek_matrix, *const sparsek_plan_options, out: *mut *mut sparsek_plan) -> sparsek_status,
    pub plan_info: unsafe extern "C" fn(*const sparsek_plan, out: *mut sparsek_plan_info) -> sparsek_status,
    pub plan_destroy: unsafe extern "C" fn(*mut sparsek_plan),
    pub multiply: unsafe extern "C" fn(*mut sparsek_plan, *const sparsek_multiply_args) -> sparsek_status,
    pub multiply_time: unsafe extern "C" fn(*mut sparsek_plan, args: *const sparsek_multiply_args, arg_count: i32, warmup: i32, repeats: i32, seconds: *mut f64) -> sparsek_status,
    pub buffer_create: unsafe extern "C" fn(*mut sparsek_context, bytes: usize, out: *mut *mut c_void) -> sparsek_status,
    pub buffer_destroy: unsafe extern "C" fn(*mut sparsek_context, *mut c_void) -> sparsek_status,
    pub buffer_write: unsafe extern "C" fn(*mut sparsek_context, buffer: *mut c_void, host: *const c_void, bytes: usize, sparsek_stream) -> sparsek_status,
    pub buffer_read: unsafe extern "C" fn(*mut sparsek_context, host: *mut c_void, buffer: *const c_void, bytes: usize, sparsek_stream) -> sparsek_status,
    pub buffer_fill: unsafe extern "C" fn(*mut sparsek_context, buffer: *mut c_void, byte: i32, bytes: usize, sparsek_stream) -> sparsek_status,
    pub stream_create: unsafe extern "C" fn(*mut sparsek_context, out: *mut sparsek_stream) -> sparsek_status,
    pub stream_destroy: unsafe extern "C" fn(*mut sparsek_context, sparsek_stream) -> sparsek_status,
    pub stream_synchronize: unsafe extern "C" fn(*mut sparsek_context, sparsek_stream) -> sparsek_status,
    pub stream_query: unsafe extern "C" fn(*mut sparsek_context, sparsek_stream, done: *mut i32) -> sparsek_status,
    pub check: unsafe extern "C" fn(*const sparsek_check_args, out: *mut sparsek_check_report) -> sparsek_status,
    pub dense_time: unsafe extern "C" fn(*mut sparsek_context, *const sparsek_dense_time_args, seconds: *mut f64) -> sparsek_status,
    pub graph_time: unsafe extern "C" fn(plans: *const *mut sparsek_plan, args: *const sparsek_multiply_args, count: i32, warmup: i32, repeats: i32, seconds: *mut f64) -> sparsek_status,
    pub tuner_create: unsafe extern "C" fn(*mut sparsek_matrix, *const sparsek_plan_options, *const sparsek_tuner_options, out: *mut *mut sparsek_tuner) -> sparsek_status,
    pub tuner_step: unsafe extern "C" fn(*mut sparsek_tuner, candidate: *mut i32) -> sparsek_status,
    pub tuner_candidate_count: unsafe extern "C" fn(*const sparsek_tuner) -> i32,
    pub tuner_candidate: unsafe extern "C" fn(*const sparsek_tuner, index: i32, out: *mut sparsek_candidate_info) -> sparsek_status,
    pub tuner_finish: unsafe extern "C" fn(*mut sparsek_tuner, out: *mut *mut sparsek_plan) -> sparsek_status,
    pub tuner_destroy: unsafe extern "C" fn(*mut sparsek_tuner),
    pub tuning_cache_open: unsafe extern "C" fn(path: *const c_char, source: i32, out: *mut *mut sparsek_tuning_cache) -> sparsek_status,
    pub tuning_cache_info: unsafe extern "C" fn(*const sparsek_tuning_cache, out: *mut sparsek_tuning_cache_info) -> sparsek_status,
    pub tuning_cache_entry: unsafe extern "C" fn(*const sparsek_tuning_cache, index: i64, out: *mut sparsek_tuning_entry) -> sparsek_status,
    pub tuning_cache_candidate: unsafe extern "C" fn(*const sparsek_tuning_cache, index: i64, candidate: i32, out: *mut sparsek_tuning_candidate) -> sparsek_status,
    pub tuning_cache_close: unsafe extern "C" fn(*mut sparsek_tuning_cache),
    pub tuning_cache_merge: unsafe extern "C" fn(into: *const c_char, from: *const sparsek_tuning_cache, out: *mut sparsek_tuning_change) -> sparsek_status,
    pub tuning_cache_clear: unsafe extern "C" fn(path: *const c_char, out: *mut sparsek_tuning_change) -> sparsek_status,
    pub sms_hold: unsafe extern "C" fn(*mut sparsek_context, count: i32, seconds: f64, out: *mut *mut sparsek_sm_hold) -> sparsek_status,
    pub sms_release: unsafe extern "C" fn(*mut sparsek_sm_hold, expired: *mut i32) -> sparsek_status,
    pub plan_describe: unsafe extern "C" fn(*const sparsek_plan, out: *mut sparsek_plan_info) -> sparsek_status,
    pub matrix_status: unsafe extern "C" fn(*mut sparsek_matrix, wait: i32) -> sparsek_status,
    pub plan_release: unsafe extern "C" fn(*mut sparsek_plan, sparsek_stream),
    pub matrix_release: unsafe extern "C" fn(*mut sparsek_matrix, sparsek_stream),
    pub plan_update: unsafe extern "C" fn(*mut sparsek_plan, index: *const sparsek_bsr) -> sparsek_status,
    pub plan_measure: unsafe extern "C" fn(*mut sparsek_context, shape: *const sparsek_bsr, options: *const sparsek_plan_options, out: *mut sparsek_plan_layout) -> sparsek_status,
    pub plan_write: unsafe extern "C" fn(*mut sparsek_context, index: *const sparsek_bsr, layout: *const sparsek_plan_layout, memory: *mut c_void, fault: *mut i64) -> sparsek_status,
    pub plan_run: unsafe extern "C" fn(*mut sparsek_context, layout: *const sparsek_plan_layout, memory: *const c_void, args: *const sparsek_multiply_args) -> sparsek_status,
    pub pattern_from_mask: unsafe extern "C" fn(*mut sparsek_context, args: *const sparsek_pattern_args) -> sparsek_status,
    pub pattern_from_topk: unsafe extern "C" fn(*mut sparsek_context, args: *const sparsek_pattern_args) -> sparsek_status,
    pub pattern_from_dense: unsafe extern "C" fn(*mut sparsek_context, args: *const sparsek_pattern_args) -> sparsek_status,
    pub pattern_from_csr: unsafe extern "C" fn(*mut sparsek_context, csr: *const sparsek_bsr, args: *const sparsek_pattern_args) -> sparsek_status,
    pub pattern_from_blocks: unsafe extern "C" fn(*mut sparsek_context, a: *const sparsek_bsr, args: *const sparsek_pattern_args) -> sparsek_status,
    pub pattern_from_counts: unsafe extern "C" fn(*mut sparsek_context, args: *const sparsek_pattern_args) -> sparsek_status,
    pub pattern_block_diagonal: unsafe extern "C" fn(*mut sparsek_context, matrices: *const *const sparsek_bsr, count: i32, args: *const sparsek_pattern_args) -> sparsek_status,
    pub transpose_index: unsafe extern "C" fn(*mut sparsek_context, a: *const sparsek_bsr, args: *const sparsek_pattern_args) -> sparsek_status,
    pub to_csr: unsafe extern "C" fn(*mut sparsek_context, a: *const sparsek_bsr, args: *const sparsek_pattern_args) -> sparsek_status,
    pub pattern_check: unsafe extern "C" fn(*mut sparsek_context, a: *const sparsek_bsr, fault: *mut i64) -> sparsek_status,
    pub to_dense: unsafe extern "C" fn(*mut sparsek_context, args: *const sparsek_values_args) -> sparsek_status,
    pub gather_values: unsafe extern "C" fn(*mut sparsek_context, args: *const sparsek_values_args) -> sparsek_status,
    pub block_norms: unsafe extern "C" fn(*mut sparsek_context, args: *const sparsek_values_args) -> sparsek_status,
    pub sum: unsafe extern "C" fn(*mut sparsek_context, args: *const sparsek_values_args) -> sparsek_status,
    pub scale: unsafe extern "C" fn(*mut sparsek_context, args: *const sparsek_values_args) -> sparsek_status,
    pub multiply_values: unsafe extern "C" fn(*mut sparsek_context, args: *const sparsek_values_args) -> sparsek_status,
    pub add_values: unsafe extern "C" fn(*mut sparsek_context, args: *const sparsek_values_args) -> sparsek_status,
    pub attention_create: unsafe extern "C" fn(*mut sparsek_context, *const sparsek_attention_options, out: *mut *mut sparsek_attention) -> sparsek_status,
    pub attention_info: unsafe extern "C" fn(*const sparsek_attention, out: *mut sparsek_attention_info) -> sparsek_status,
    pub attention_forward: unsafe extern "C" fn(*mut sparsek_attention, *const sparsek_attention_args) -> sparsek_status,
    pub attention_backward: unsafe extern "C" fn(*mut sparsek_attention, *const sparsek_attention_args) -> sparsek_status,
    pub attention_time: unsafe extern "C" fn(*mut sparsek_attention, args: *const sparsek_attention_args, arg_count: i32, backward: i32, warmup: i32, repeats: i32, seconds: *mut f64) -> sparsek_status,
    pub attention_destroy: unsafe extern "C" fn(*mut sparsek_attention),
    pub attention_release: unsafe extern "C" fn(*mut sparsek_attention, sparsek_stream),
    pub attention_check: unsafe extern "C" fn(*const sparsek_attention_check_args, out: *mut sparsek_check_report) -> sparsek_status,
    pub attention_update: unsafe extern "C" fn(*mut sparsek_attention, layout: *const sparsek_bsr) -> sparsek_status,
    pub attention_status: unsafe extern "C" fn(*mut sparsek_attention, wait: i32) -> sparsek_status,
    pub attention_pool: unsafe extern "C" fn(*mut sparsek_context, args: *const sparsek_pool_args) -> sparsek_status,
}

#[cfg(test)]
pub(crate) const LAYOUTS: &[(&str, usize)] = &[
    ("sizeof(sparsek_build_info)", size_of::<sparsek_build_info>()),
    ("offsetof(sparsek_build_info, abi_size)", core::mem::offset_of!(sparsek_build_info, abi_size)),
    ("offsetof(sparsek_build_info, version)", core::mem::offset_of!(sparsek_build_info, version)),
    ("offsetof(sparsek_build_info, cutlass)", core::mem::offset_of!(sparsek_build_info, cutlass)),
    ("offsetof(sparsek_build_info, cuda)", core::mem::offset_of!(sparsek_build_info, cuda)),
    ("offsetof(sparsek_build_info, compiler)", core::mem::offset_of!(sparsek_build_info, compiler)),
    ("offsetof(sparsek_build_info, commit)", core::mem::offset_of!(sparsek_build_info, commit)),
    ("sizeof(sparsek_kernel_info)", size_of::<sparsek_kernel_info>()),
    ("offsetof(sparsek_kernel_info, abi_size)", core::mem::offset_of!(sparsek_kernel_info, abi_size)),
    ("offsetof(sparsek_kernel_info, name)", core::mem::offset_of!(sparsek_kernel_info, name)),
    ("offsetof(sparsek_kernel_info, why)", core::mem::offset_of!(sparsek_kernel_info, why)),
    ("offsetof(sparsek_kernel_info, backend)", core::mem::offset_of!(sparsek_kernel_info, backend)),
    ("offsetof(sparsek_kernel_info, dtype)", core::mem::offset_of!(sparsek_kernel_info, dtype)),
    ("offsetof(sparsek_kernel_info, tile_m)", core::mem::offset_of!(sparsek_kernel_info, tile_m)),
    ("offsetof(sparsek_kernel_info, tile_n)", core::mem::offset_of!(sparsek_kernel_info, tile_n)),
    ("offsetof(sparsek_kernel_info, tile_k)", core::mem::offset_of!(sparsek_kernel_info, tile_k)),
    ("offsetof(sparsek_kernel_info, stages)", core::mem::offset_of!(sparsek_kernel_info, stages)),
    ("offsetof(sparsek_kernel_info, block_m)", core::mem::offset_of!(sparsek_kernel_info, block_m)),
    ("offsetof(sparsek_kernel_info, block_m_multiple)", core::mem::offset_of!(sparsek_kernel_info, block_m_multiple)),
    ("offsetof(sparsek_kernel_info, block_k_multiple)", core::mem::offset_of!(sparsek_kernel_info, block_k_multiple)),
    ("offsetof(sparsek_kernel_info, baseline)", core::mem::offset_of!(sparsek_kernel_info, baseline)),
    ("offsetof(sparsek_kernel_info, library)", core::mem::offset_of!(sparsek_kernel_info, library)),
    ("offsetof(sparsek_kernel_info, reads_absent)", core::mem::offset_of!(sparsek_kernel_info, reads_absent)),
    ("offsetof(sparsek_kernel_info, reserved)", core::mem::offset_of!(sparsek_kernel_info, reserved)),
    ("offsetof(sparsek_kernel_info, dtype_b)", core::mem::offset_of!(sparsek_kernel_info, dtype_b)),
    ("offsetof(sparsek_kernel_info, reserved2)", core::mem::offset_of!(sparsek_kernel_info, reserved2)),
    ("sizeof(sparsek_device_info)", size_of::<sparsek_device_info>()),
    ("offsetof(sparsek_device_info, abi_size)", core::mem::offset_of!(sparsek_device_info, abi_size)),
    ("offsetof(sparsek_device_info, name)", core::mem::offset_of!(sparsek_device_info, name)),
    ("offsetof(sparsek_device_info, compute_major)", core::mem::offset_of!(sparsek_device_info, compute_major)),
    ("offsetof(sparsek_device_info, compute_minor)", core::mem::offset_of!(sparsek_device_info, compute_minor)),
    ("offsetof(sparsek_device_info, sm_count)", core::mem::offset_of!(sparsek_device_info, sm_count)),
    ("offsetof(sparsek_device_info, memory_bytes)", core::mem::offset_of!(sparsek_device_info, memory_bytes)),
    ("offsetof(sparsek_device_info, l2_bytes)", core::mem::offset_of!(sparsek_device_info, l2_bytes)),
    ("offsetof(sparsek_device_info, driver_version)", core::mem::offset_of!(sparsek_device_info, driver_version)),
    ("offsetof(sparsek_device_info, usable)", core::mem::offset_of!(sparsek_device_info, usable)),
    ("offsetof(sparsek_device_info, clock_hz)", core::mem::offset_of!(sparsek_device_info, clock_hz)),
    ("sizeof(sparsek_context_options)", size_of::<sparsek_context_options>()),
    ("offsetof(sparsek_context_options, abi_size)", core::mem::offset_of!(sparsek_context_options, abi_size)),
    ("offsetof(sparsek_context_options, backend)", core::mem::offset_of!(sparsek_context_options, backend)),
    ("offsetof(sparsek_context_options, device)", core::mem::offset_of!(sparsek_context_options, device)),
    ("offsetof(sparsek_context_options, threads)", core::mem::offset_of!(sparsek_context_options, threads)),
    ("offsetof(sparsek_context_options, allocate)", core::mem::offset_of!(sparsek_context_options, allocate)),
    ("offsetof(sparsek_context_options, release)", core::mem::offset_of!(sparsek_context_options, release)),
    ("offsetof(sparsek_context_options, user)", core::mem::offset_of!(sparsek_context_options, user)),
    ("sizeof(sparsek_context_info)", size_of::<sparsek_context_info>()),
    ("offsetof(sparsek_context_info, abi_size)", core::mem::offset_of!(sparsek_context_info, abi_size)),
    ("offsetof(sparsek_context_info, backend)", core::mem::offset_of!(sparsek_context_info, backend)),
    ("offsetof(sparsek_context_info, device)", core::mem::offset_of!(sparsek_context_info, device)),
    ("offsetof(sparsek_context_info, threads)", core::mem::offset_of!(sparsek_context_info, threads)),
    ("offsetof(sparsek_context_info, gpu_fault)", core::mem::offset_of!(sparsek_context_info, gpu_fault)),
    ("offsetof(sparsek_context_info, reason)", core::mem::offset_of!(sparsek_context_info, reason)),
    ("offsetof(sparsek_context_info, isa)", core::mem::offset_of!(sparsek_context_info, isa)),
    ("sizeof(sparsek_bsr)", size_of::<sparsek_bsr>()),
    ("offsetof(sparsek_bsr, abi_size)", core::mem::offset_of!(sparsek_bsr, abi_size)),
    ("offsetof(sparsek_bsr, rows)", core::mem::offset_of!(sparsek_bsr, rows)),
    ("offsetof(sparsek_bsr, cols)", core::mem::offset_of!(sparsek_bsr, cols)),
    ("offsetof(sparsek_bsr, block_m)", core::mem::offset_of!(sparsek_bsr, block_m)),
    ("offsetof(sparsek_bsr, block_k)", core::mem::offset_of!(sparsek_bsr, block_k)),
    ("offsetof(sparsek_bsr, nnzb)", core::mem::offset_of!(sparsek_bsr, nnzb)),
    ("offsetof(sparsek_bsr, dtype)", core::mem::offset_of!(sparsek_bsr, dtype)),
    ("offsetof(sparsek_bsr, index_type)", core::mem::offset_of!(sparsek_bsr, index_type)),
    ("offsetof(sparsek_bsr, memory)", core::mem::offset_of!(sparsek_bsr, memory)),
    ("offsetof(sparsek_bsr, reserved)", core::mem::offset_of!(sparsek_bsr, reserved)),
    ("offsetof(sparsek_bsr, row_ptr)", core::mem::offset_of!(sparsek_bsr, row_ptr)),
    ("offsetof(sparsek_bsr, col_idx)", core::mem::offset_of!(sparsek_bsr, col_idx)),
    ("offsetof(sparsek_bsr, values)", core::mem::offset_of!(sparsek_bsr, values)),
    ("offsetof(sparsek_bsr, block_idx)", core::mem::offset_of!(sparsek_bsr, block_idx)),
    ("offsetof(sparsek_bsr, stream)", core::mem::offset_of!(sparsek_bsr, stream)),
    ("offsetof(sparsek_bsr, flags)", core::mem::offset_of!(sparsek_bsr, flags)),
    ("offsetof(sparsek_bsr, reserved2)", core::mem::offset_of!(sparsek_bsr, reserved2)),
    ("sizeof(sparsek_plan_options)", size_of::<sparsek_plan_options>()),
    ("offsetof(sparsek_plan_options, abi_size)", core::mem::offset_of!(sparsek_plan_options, abi_size)),
    ("offsetof(sparsek_plan_options, n)", core::mem::offset_of!(sparsek_plan_options, n)),
    ("offsetof(sparsek_plan_options, ldb)", core::mem::offset_of!(sparsek_plan_options, ldb)),
    ("offsetof(sparsek_plan_options, ldc)", core::mem::offset_of!(sparsek_plan_options, ldc)),
    ("offsetof(sparsek_plan_options, alignment)", core::mem::offset_of!(sparsek_plan_options, alignment)),
    ("offsetof(sparsek_plan_options, reserved)", core::mem::offset_of!(sparsek_plan_options, reserved)),
    ("offsetof(sparsek_plan_options, kernel)", core::mem::offset_of!(sparsek_plan_options, kernel)),
    ("offsetof(sparsek_plan_options, dtype_c)", core::mem::offset_of!(sparsek_plan_options, dtype_c)),
    ("offsetof(sparsek_plan_options, bias)", core::mem::offset_of!(sparsek_plan_options, bias)),
    ("offsetof(sparsek_plan_options, activation)", core::mem::offset_of!(sparsek_plan_options, activation)),
    ("offsetof(sparsek_plan_options, reserved2)", core::mem::offset_of!(sparsek_plan_options, reserved2)),
    ("offsetof(sparsek_plan_options, allow_dense)", core::mem::offset_of!(sparsek_plan_options, allow_dense)),
    ("offsetof(sparsek_plan_options, reserved3)", core::mem::offset_of!(sparsek_plan_options, reserved3)),
    ("offsetof(sparsek_plan_options, tuning_seconds)", core::mem::offset_of!(sparsek_plan_options, tuning_seconds)),
    ("offsetof(sparsek_plan_options, op)", core::mem::offset_of!(sparsek_plan_options, op)),
    ("offsetof(sparsek_plan_options, order_b)", core::mem::offset_of!(sparsek_plan_options, order_b)),
    ("offsetof(sparsek_plan_options, order_c)", core::mem::offset_of!(sparsek_plan_options, order_c)),
    ("offsetof(sparsek_plan_options, compute)", core::mem::offset_of!(sparsek_plan_options, compute)),
    ("offsetof(sparsek_plan_options, flags)", core::mem::offset_of!(sparsek_plan_options, flags)),
    ("offsetof(sparsek_plan_options, workers)", core::mem::offset_of!(sparsek_plan_options, workers)),
    ("offsetof(sparsek_plan_options, values_static)", core::mem::offset_of!(sparsek_plan_options, values_static)),
    ("offsetof(sparsek_plan_options, alignment_c)", core::mem::offset_of!(sparsek_plan_options, alignment_c)),
    ("offsetof(sparsek_plan_options, ldx)", core::mem::offset_of!(sparsek_plan_options, ldx)),
    ("offsetof(sparsek_plan_options, order_x)", core::mem::offset_of!(sparsek_plan_options, order_x)),
    ("offsetof(sparsek_plan_options, reserved5)", core::mem::offset_of!(sparsek_plan_options, reserved5)),
    ("offsetof(sparsek_plan_options, dtype_b)", core::mem::offset_of!(sparsek_plan_options, dtype_b)),
    ("offsetof(sparsek_plan_options, reserved4)", core::mem::offset_of!(sparsek_plan_options, reserved4)),
    ("sizeof(sparsek_plan_info)", size_of::<sparsek_plan_info>()),
    ("offsetof(sparsek_plan_info, abi_size)", core::mem::offset_of!(sparsek_plan_info, abi_size)),
    ("offsetof(sparsek_plan_info, kernel)", core::mem::offset_of!(sparsek_plan_info, kernel)),
    ("offsetof(sparsek_plan_info, reason)", core::mem::offset_of!(sparsek_plan_info, reason)),
    ("offsetof(sparsek_plan_info, tile_m)", core::mem::offset_of!(sparsek_plan_info, tile_m)),
    ("offsetof(sparsek_plan_info, tile_n)", core::mem::offset_of!(sparsek_plan_info, tile_n)),
    ("offsetof(sparsek_plan_info, tile_k)", core::mem::offset_of!(sparsek_plan_info, tile_k)),
    ("offsetof(sparsek_plan_info, stages)", core::mem::offset_of!(sparsek_plan_info, stages)),
    ("offsetof(sparsek_plan_info, tiles)", core::mem::offset_of!(sparsek_plan_info, tiles)),
    ("offsetof(sparsek_plan_info, entries)", core::mem::offset_of!(sparsek_plan_info, entries)),
    ("offsetof(sparsek_plan_info, workspace_bytes)", core::mem::offset_of!(sparsek_plan_info, workspace_bytes)),
    ("offsetof(sparsek_plan_info, unit_roundoff)", core::mem::offset_of!(sparsek_plan_info, unit_roundoff)),
    ("offsetof(sparsek_plan_info, recomputed)", core::mem::offset_of!(sparsek_plan_info, recomputed)),
    ("offsetof(sparsek_plan_info, chosen_by)", core::mem::offset_of!(sparsek_plan_info, chosen_by)),
    ("offsetof(sparsek_plan_info, reserved)", core::mem::offset_of!(sparsek_plan_info, reserved)),
    ("offsetof(sparsek_plan_info, predicted_seconds)", core::mem::offset_of!(sparsek_plan_info, predicted_seconds)),
    ("offsetof(sparsek_plan_info, measured_seconds)", core::mem::offset_of!(sparsek_plan_info, measured_seconds)),
    ("offsetof(sparsek_plan_info, warning)", core::mem::offset_of!(sparsek_plan_info, warning)),
    ("offsetof(sparsek_plan_info, digest)", core::mem::offset_of!(sparsek_plan_info, digest)),
    ("offsetof(sparsek_plan_info, product_bytes)", core::mem::offset_of!(sparsek_plan_info, product_bytes)),
    ("offsetof(sparsek_plan_info, product_roundoff)", core::mem::offset_of!(sparsek_plan_info, product_roundoff)),
    ("offsetof(sparsek_plan_info, copies)", core::mem::offset_of!(sparsek_plan_info, copies)),
    ("offsetof(sparsek_plan_info, reserved2)", core::mem::offset_of!(sparsek_plan_info, reserved2)),
    ("offsetof(sparsek_plan_info, kept_bytes)", core::mem::offset_of!(sparsek_plan_info, kept_bytes)),
    ("sizeof(sparsek_tuner_options)", size_of::<sparsek_tuner_options>()),
    ("offsetof(sparsek_tuner_options, abi_size)", core::mem::offset_of!(sparsek_tuner_options, abi_size)),
    ("offsetof(sparsek_tuner_options, seconds)", core::mem::offset_of!(sparsek_tuner_options, seconds)),
    ("offsetof(sparsek_tuner_options, all)", core::mem::offset_of!(sparsek_tuner_options, all)),
    ("offsetof(sparsek_tuner_options, reserved)", core::mem::offset_of!(sparsek_tuner_options, reserved)),
    ("sizeof(sparsek_candidate_info)", size_of::<sparsek_candidate_info>()),
    ("offsetof(sparsek_candidate_info, abi_size)", core::mem::offset_of!(sparsek_candidate_info, abi_size)),
    ("offsetof(sparsek_candidate_info, kernel)", core::mem::offset_of!(sparsek_candidate_info, kernel)),
    ("offsetof(sparsek_candidate_info, note)", core::mem::offset_of!(sparsek_candidate_info, note)),
    ("offsetof(sparsek_candidate_info, serves)", core::mem::offset_of!(sparsek_candidate_info, serves)),
    ("offsetof(sparsek_candidate_info, best)", core::mem::offset_of!(sparsek_candidate_info, best)),
    ("offsetof(sparsek_candidate_info, runs)", core::mem::offset_of!(sparsek_candidate_info, runs)),
    ("offsetof(sparsek_candidate_info, reserved)", core::mem::offset_of!(sparsek_candidate_info, reserved)),
    ("offsetof(sparsek_candidate_info, predicted_seconds)", core::mem::offset_of!(sparsek_candidate_info, predicted_seconds)),
    ("offsetof(sparsek_candidate_info, seconds)", core::mem::offset_of!(sparsek_candidate_info, seconds)),
    ("offsetof(sparsek_candidate_info, spread)", core::mem::offset_of!(sparsek_candidate_info, spread)),
    ("offsetof(sparsek_candidate_info, setup_seconds)", core::mem::offset_of!(sparsek_candidate_info, setup_seconds)),
    ("sizeof(sparsek_multiply_args)", size_of::<sparsek_multiply_args>()),
    ("offsetof(sparsek_multiply_args, abi_size)", core::mem::offset_of!(sparsek_multiply_args, abi_size)),
    ("offsetof(sparsek_multiply_args, alpha)", core::mem::offset_of!(sparsek_multiply_args, alpha)),
    ("offsetof(sparsek_multiply_args, beta)", core::mem::offset_of!(sparsek_multiply_args, beta)),
    ("offsetof(sparsek_multiply_args, b)", core::mem::offset_of!(sparsek_multiply_args, b)),
    ("offsetof(sparsek_multiply_args, ldb)", core::mem::offset_of!(sparsek_multiply_args, ldb)),
    ("offsetof(sparsek_multiply_args, c)", core::mem::offset_of!(sparsek_multiply_args, c)),
    ("offsetof(sparsek_multiply_args, ldc)", core::mem::offset_of!(sparsek_multiply_args, ldc)),
    ("offsetof(sparsek_multiply_args, stream)", core::mem::offset_of!(sparsek_multiply_args, stream)),
    ("offsetof(sparsek_multiply_args, bias)", core::mem::offset_of!(sparsek_multiply_args, bias)),
    ("offsetof(sparsek_multiply_args, values)", core::mem::offset_of!(sparsek_multiply_args, values)),
    ("offsetof(sparsek_multiply_args, n)", core::mem::offset_of!(sparsek_multiply_args, n)),
    ("offsetof(sparsek_multiply_args, c_in)", core::mem::offset_of!(sparsek_multiply_args, c_in)),
    ("offsetof(sparsek_multiply_args, ldc_in)", core::mem::offset_of!(sparsek_multiply_args, ldc_in)),
    ("offsetof(sparsek_multiply_args, alpha_device)", core::mem::offset_of!(sparsek_multiply_args, alpha_device)),
    ("offsetof(sparsek_multiply_args, beta_device)", core::mem::offset_of!(sparsek_multiply_args, beta_device)),
    ("offsetof(sparsek_multiply_args, workspace)", core::mem::offset_of!(sparsek_multiply_args, workspace)),
    ("offsetof(sparsek_multiply_args, workspace_bytes)", core::mem::offset_of!(sparsek_multiply_args, workspace_bytes)),
    ("offsetof(sparsek_multiply_args, bytes_b)", core::mem::offset_of!(sparsek_multiply_args, bytes_b)),
    ("offsetof(sparsek_multiply_args, bytes_c)", core::mem::offset_of!(sparsek_multiply_args, bytes_c)),
    ("offsetof(sparsek_multiply_args, dtype_b)", core::mem::offset_of!(sparsek_multiply_args, dtype_b)),
    ("offsetof(sparsek_multiply_args, flags)", core::mem::offset_of!(sparsek_multiply_args, flags)),
    ("offsetof(sparsek_multiply_args, batch)", core::mem::offset_of!(sparsek_multiply_args, batch)),
    ("offsetof(sparsek_multiply_args, reserved)", core::mem::offset_of!(sparsek_multiply_args, reserved)),
    ("offsetof(sparsek_multiply_args, stride_b)", core::mem::offset_of!(sparsek_multiply_args, stride_b)),
    ("offsetof(sparsek_multiply_args, stride_c)", core::mem::offset_of!(sparsek_multiply_args, stride_c)),
    ("offsetof(sparsek_multiply_args, stride_values)", core::mem::offset_of!(sparsek_multiply_args, stride_values)),
    ("offsetof(sparsek_multiply_args, stride_bias)", core::mem::offset_of!(sparsek_multiply_args, stride_bias)),
    ("offsetof(sparsek_multiply_args, x)", core::mem::offset_of!(sparsek_multiply_args, x)),
    ("offsetof(sparsek_multiply_args, ldx)", core::mem::offset_of!(sparsek_multiply_args, ldx)),
    ("offsetof(sparsek_multiply_args, bytes_x)", core::mem::offset_of!(sparsek_multiply_args, bytes_x)),
    ("offsetof(sparsek_multiply_args, stride_x)", core::mem::offset_of!(sparsek_multiply_args, stride_x)),
    ("sizeof(sparsek_plan_layout)", size_of::<sparsek_plan_layout>()),
    ("offsetof(sparsek_plan_layout, abi_size)", core::mem::offset_of!(sparsek_plan_layout, abi_size)),
    ("offsetof(sparsek_plan_layout, bytes)", core::mem::offset_of!(sparsek_plan_layout, bytes)),
    ("offsetof(sparsek_plan_layout, workspace_bytes)", core::mem::offset_of!(sparsek_plan_layout, workspace_bytes)),
    ("offsetof(sparsek_plan_layout, alignment)", core::mem::offset_of!(sparsek_plan_layout, alignment)),
    ("offsetof(sparsek_plan_layout, reserved)", core::mem::offset_of!(sparsek_plan_layout, reserved)),
    ("offsetof(sparsek_plan_layout, header)", core::mem::offset_of!(sparsek_plan_layout, header)),
    ("sizeof(sparsek_pattern_args)", size_of::<sparsek_pattern_args>()),
    ("offsetof(sparsek_pattern_args, abi_size)", core::mem::offset_of!(sparsek_pattern_args, abi_size)),
    ("offsetof(sparsek_pattern_args, rows)", core::mem::offset_of!(sparsek_pattern_args, rows)),
    ("offsetof(sparsek_pattern_args, cols)", core::mem::offset_of!(sparsek_pattern_args, cols)),
    ("offsetof(sparsek_pattern_args, block_m)", core::mem::offset_of!(sparsek_pattern_args, block_m)),
    ("offsetof(sparsek_pattern_args, block_k)", core::mem::offset_of!(sparsek_pattern_args, block_k)),
    ("offsetof(sparsek_pattern_args, capacity)", core::mem::offset_of!(sparsek_pattern_args, capacity)),
    ("offsetof(sparsek_pattern_args, dtype)", core::mem::offset_of!(sparsek_pattern_args, dtype)),
    ("offsetof(sparsek_pattern_args, index_type)", core::mem::offset_of!(sparsek_pattern_args, index_type)),
    ("offsetof(sparsek_pattern_args, memory)", core::mem::offset_of!(sparsek_pattern_args, memory)),
    ("offsetof(sparsek_pattern_args, flags)", core::mem::offset_of!(sparsek_pattern_args, flags)),
    ("offsetof(sparsek_pattern_args, row_ptr)", core::mem::offset_of!(sparsek_pattern_args, row_ptr)),
    ("offsetof(sparsek_pattern_args, col_idx)", core::mem::offset_of!(sparsek_pattern_args, col_idx)),
    ("offsetof(sparsek_pattern_args, values)", core::mem::offset_of!(sparsek_pattern_args, values)),
    ("offsetof(sparsek_pattern_args, block_idx)", core::mem::offset_of!(sparsek_pattern_args, block_idx)),
    ("offsetof(sparsek_pattern_args, row_idx)", core::mem::offset_of!(sparsek_pattern_args, row_idx)),
    ("offsetof(sparsek_pattern_args, blocks)", core::mem::offset_of!(sparsek_pattern_args, blocks)),
    ("offsetof(sparsek_pattern_args, fault)", core::mem::offset_of!(sparsek_pattern_args, fault)),
    ("offsetof(sparsek_pattern_args, stream)", core::mem::offset_of!(sparsek_pattern_args, stream)),
    ("offsetof(sparsek_pattern_args, source)", core::mem::offset_of!(sparsek_pattern_args, source)),
    ("offsetof(sparsek_pattern_args, ld)", core::mem::offset_of!(sparsek_pattern_args, ld)),
    ("offsetof(sparsek_pattern_args, source_dtype)", core::mem::offset_of!(sparsek_pattern_args, source_dtype)),
    ("offsetof(sparsek_pattern_args, source_index_type)", core::mem::offset_of!(sparsek_pattern_args, source_index_type)),
    ("offsetof(sparsek_pattern_args, order)", core::mem::offset_of!(sparsek_pattern_args, order)),
    ("offsetof(sparsek_pattern_args, norm)", core::mem::offset_of!(sparsek_pattern_args, norm)),
    ("offsetof(sparsek_pattern_args, threshold)", core::mem::offset_of!(sparsek_pattern_args, threshold)),
    ("offsetof(sparsek_pattern_args, count)", core::mem::offset_of!(sparsek_pattern_args, count)),
    ("offsetof(sparsek_pattern_args, norms)", core::mem::offset_of!(sparsek_pattern_args, norms)),
    ("offsetof(sparsek_pattern_args, bins)", core::mem::offset_of!(sparsek_pattern_args, bins)),
    ("sizeof(sparsek_values_args)", size_of::<sparsek_values_args>()),
    ("offsetof(sparsek_values_args, abi_size)", core::mem::offset_of!(sparsek_values_args, abi_size)),
    ("offsetof(sparsek_values_args, a)", core::mem::offset_of!(sparsek_values_args, a)),
    ("offsetof(sparsek_values_args, out)", core::mem::offset_of!(sparsek_values_args, out)),
    ("offsetof(sparsek_values_args, b)", core::mem::offset_of!(sparsek_values_args, b)),
    ("offsetof(sparsek_values_args, ld)", core::mem::offset_of!(sparsek_values_args, ld)),
    ("offsetof(sparsek_values_args, order)", core::mem::offset_of!(sparsek_values_args, order)),
    ("offsetof(sparsek_values_args, norm)", core::mem::offset_of!(sparsek_values_args, norm)),
    ("offsetof(sparsek_values_args, transposed)", core::mem::offset_of!(sparsek_values_args, transposed)),
    ("offsetof(sparsek_values_args, reserved)", core::mem::offset_of!(sparsek_values_args, reserved)),
    ("offsetof(sparsek_values_args, row_factors)", core::mem::offset_of!(sparsek_values_args, row_factors)),
    ("offsetof(sparsek_values_args, column_factors)", core::mem::offset_of!(sparsek_values_args, column_factors)),
    ("offsetof(sparsek_values_args, alpha)", core::mem::offset_of!(sparsek_values_args, alpha)),
    ("offsetof(sparsek_values_args, beta)", core::mem::offset_of!(sparsek_values_args, beta)),
    ("sizeof(sparsek_attention_options)", size_of::<sparsek_attention_options>()),
    ("offsetof(sparsek_attention_options, abi_size)", core::mem::offset_of!(sparsek_attention_options, abi_size)),
    ("offsetof(sparsek_attention_options, batch)", core::mem::offset_of!(sparsek_attention_options, batch)),
    ("offsetof(sparsek_attention_options, heads_q)", core::mem::offset_of!(sparsek_attention_options, heads_q)),
    ("offsetof(sparsek_attention_options, heads_k)", core::mem::offset_of!(sparsek_attention_options, heads_k)),
    ("offsetof(sparsek_attention_options, seq_q)", core::mem::offset_of!(sparsek_attention_options, seq_q)),
    ("offsetof(sparsek_attention_options, seq_k)", core::mem::offset_of!(sparsek_attention_options, seq_k)),
    ("offsetof(sparsek_attention_options, head_size)", core::mem::offset_of!(sparsek_attention_options, head_size)),
    ("offsetof(sparsek_attention_options, head_size_v)", core::mem::offset_of!(sparsek_attention_options, head_size_v)),
    ("offsetof(sparsek_attention_options, layout)", core::mem::offset_of!(sparsek_attention_options, layout)),
    ("offsetof(sparsek_attention_options, layout_batch)", core::mem::offset_of!(sparsek_attention_options, layout_batch)),
    ("offsetof(sparsek_attention_options, layout_heads)", core::mem::offset_of!(sparsek_attention_options, layout_heads)),
    ("offsetof(sparsek_attention_options, window_left)", core::mem::offset_of!(sparsek_attention_options, window_left)),
    ("offsetof(sparsek_attention_options, window_right)", core::mem::offset_of!(sparsek_attention_options, window_right)),
    ("offsetof(sparsek_attention_options, scale)", core::mem::offset_of!(sparsek_attention_options, scale)),
    ("offsetof(sparsek_attention_options, soft_cap)", core::mem::offset_of!(sparsek_attention_options, soft_cap)),
    ("offsetof(sparsek_attention_options, dtype)", core::mem::offset_of!(sparsek_attention_options, dtype)),
    ("offsetof(sparsek_attention_options, flags)", core::mem::offset_of!(sparsek_attention_options, flags)),
    ("offsetof(sparsek_attention_options, kernel)", core::mem::offset_of!(sparsek_attention_options, kernel)),
    ("offsetof(sparsek_attention_options, workers)", core::mem::offset_of!(sparsek_attention_options, workers)),
    ("offsetof(sparsek_attention_options, reserved)", core::mem::offset_of!(sparsek_attention_options, reserved)),
    ("offsetof(sparsek_attention_options, dtype_o)", core::mem::offset_of!(sparsek_attention_options, dtype_o)),
    ("offsetof(sparsek_attention_options, reserved2)", core::mem::offset_of!(sparsek_attention_options, reserved2)),
    ("sizeof(sparsek_attention_info)", size_of::<sparsek_attention_info>()),
    ("offsetof(sparsek_attention_info, abi_size)", core::mem::offset_of!(sparsek_attention_info, abi_size)),
    ("offsetof(sparsek_attention_info, kernel)", core::mem::offset_of!(sparsek_attention_info, kernel)),
    ("offsetof(sparsek_attention_info, backward)", core::mem::offset_of!(sparsek_attention_info, backward)),
    ("offsetof(sparsek_attention_info, blocks)", core::mem::offset_of!(sparsek_attention_info, blocks)),
    ("offsetof(sparsek_attention_info, partial)", core::mem::offset_of!(sparsek_attention_info, partial)),
    ("offsetof(sparsek_attention_info, pairs)", core::mem::offset_of!(sparsek_attention_info, pairs)),
    ("offsetof(sparsek_attention_info, forward_bytes)", core::mem::offset_of!(sparsek_attention_info, forward_bytes)),
    ("offsetof(sparsek_attention_info, backward_bytes)", core::mem::offset_of!(sparsek_attention_info, backward_bytes)),
    ("offsetof(sparsek_attention_info, unit_roundoff)", core::mem::offset_of!(sparsek_attention_info, unit_roundoff)),
    ("offsetof(sparsek_attention_info, product_roundoff)", core::mem::offset_of!(sparsek_attention_info, product_roundoff)),
    ("sizeof(sparsek_attention_args)", size_of::<sparsek_attention_args>()),
    ("offsetof(sparsek_attention_args, abi_size)", core::mem::offset_of!(sparsek_attention_args, abi_size)),
    ("offsetof(sparsek_attention_args, q)", core::mem::offset_of!(sparsek_attention_args, q)),
    ("offsetof(sparsek_attention_args, k)", core::mem::offset_of!(sparsek_attention_args, k)),
    ("offsetof(sparsek_attention_args, v)", core::mem::offset_of!(sparsek_attention_args, v)),
    ("offsetof(sparsek_attention_args, o)", core::mem::offset_of!(sparsek_attention_args, o)),
    ("offsetof(sparsek_attention_args, lse)", core::mem::offset_of!(sparsek_attention_args, lse)),
    ("offsetof(sparsek_attention_args, stride_q)", core::mem::offset_of!(sparsek_attention_args, stride_q)),
    ("offsetof(sparsek_attention_args, stride_k)", core::mem::offset_of!(sparsek_attention_args, stride_k)),
    ("offsetof(sparsek_attention_args, stride_v)", core::mem::offset_of!(sparsek_attention_args, stride_v)),
    ("offsetof(sparsek_attention_args, stride_o)", core::mem::offset_of!(sparsek_attention_args, stride_o)),
    ("offsetof(sparsek_attention_args, lengths_q)", core::mem::offset_of!(sparsek_attention_args, lengths_q)),
    ("offsetof(sparsek_attention_args, lengths_k)", core::mem::offset_of!(sparsek_attention_args, lengths_k)),
    ("offsetof(sparsek_attention_args, stream)", core::mem::offset_of!(sparsek_attention_args, stream)),
    ("offsetof(sparsek_attention_args, workspace)", core::mem::offset_of!(sparsek_attention_args, workspace)),
    ("offsetof(sparsek_attention_args, workspace_bytes)", core::mem::offset_of!(sparsek_attention_args, workspace_bytes)),
    ("offsetof(sparsek_attention_args, grad_o)", core::mem::offset_of!(sparsek_attention_args, grad_o)),
    ("offsetof(sparsek_attention_args, grad_q)", core::mem::offset_of!(sparsek_attention_args, grad_q)),
    ("offsetof(sparsek_attention_args, grad_k)", core::mem::offset_of!(sparsek_attention_args, grad_k)),
    ("offsetof(sparsek_attention_args, grad_v)", core::mem::offset_of!(sparsek_attention_args, grad_v)),
    ("offsetof(sparsek_attention_args, stride_grad_o)", core::mem::offset_of!(sparsek_attention_args, stride_grad_o)),
    ("offsetof(sparsek_attention_args, stride_grad_q)", core::mem::offset_of!(sparsek_attention_args, stride_grad_q)),
    ("offsetof(sparsek_attention_args, stride_grad_k)", core::mem::offset_of!(sparsek_attention_args, stride_grad_k)),
    ("offsetof(sparsek_attention_args, stride_grad_v)", core::mem::offset_of!(sparsek_attention_args, stride_grad_v)),
    ("offsetof(sparsek_attention_args, mass)", core::mem::offset_of!(sparsek_attention_args, mass)),
    ("offsetof(sparsek_attention_args, bias)", core::mem::offset_of!(sparsek_attention_args, bias)),
    ("offsetof(sparsek_attention_args, stride_bias)", core::mem::offset_of!(sparsek_attention_args, stride_bias)),
    ("offsetof(sparsek_attention_args, mask)", core::mem::offset_of!(sparsek_attention_args, mask)),
    ("offsetof(sparsek_attention_args, mask_index)", core::mem::offset_of!(sparsek_attention_args, mask_index)),
    ("offsetof(sparsek_attention_args, mask_blocks)", core::mem::offset_of!(sparsek_attention_args, mask_blocks)),
    ("offsetof(sparsek_attention_args, bias_dtype)", core::mem::offset_of!(sparsek_attention_args, bias_dtype)),
    ("offsetof(sparsek_attention_args, reserved)", core::mem::offset_of!(sparsek_attention_args, reserved)),
    ("offsetof(sparsek_attention_args, grad_bias)", core::mem::offset_of!(sparsek_attention_args, grad_bias)),
    ("offsetof(sparsek_attention_args, page_table)", core::mem::offset_of!(sparsek_attention_args, page_table)),
    ("offsetof(sparsek_attention_args, page_table_stride)", core::mem::offset_of!(sparsek_attention_args, page_table_stride)),
    ("offsetof(sparsek_attention_args, pages)", core::mem::offset_of!(sparsek_attention_args, pages)),
    ("offsetof(sparsek_attention_args, page_rows)", core::mem::offset_of!(sparsek_attention_args, page_rows)),
    ("offsetof(sparsek_attention_args, scale_q)", core::mem::offset_of!(sparsek_attention_args, scale_q)),
    ("offsetof(sparsek_attention_args, scale_k)", core::mem::offset_of!(sparsek_attention_args, scale_k)),
    ("offsetof(sparsek_attention_args, scale_v)", core::mem::offset_of!(sparsek_attention_args, scale_v)),
    ("sizeof(sparsek_attention_check_args)", size_of::<sparsek_attention_check_args>()),
    ("offsetof(sparsek_attention_check_args, abi_size)", core::mem::offset_of!(sparsek_attention_check_args, abi_size)),
    ("offsetof(sparsek_attention_check_args, options)", core::mem::offset_of!(sparsek_attention_check_args, options)),
    ("offsetof(sparsek_attention_check_args, args)", core::mem::offset_of!(sparsek_attention_check_args, args)),
    ("offsetof(sparsek_attention_check_args, unit_roundoff)", core::mem::offset_of!(sparsek_attention_check_args, unit_roundoff)),
    ("offsetof(sparsek_attention_check_args, product_roundoff)", core::mem::offset_of!(sparsek_attention_check_args, product_roundoff)),
    ("offsetof(sparsek_attention_check_args, output)", core::mem::offset_of!(sparsek_attention_check_args, output)),
    ("offsetof(sparsek_attention_check_args, threads)", core::mem::offset_of!(sparsek_attention_check_args, threads)),
    ("sizeof(sparsek_pool_args)", size_of::<sparsek_pool_args>()),
    ("offsetof(sparsek_pool_args, abi_size)", core::mem::offset_of!(sparsek_pool_args, abi_size)),
    ("offsetof(sparsek_pool_args, batch)", core::mem::offset_of!(sparsek_pool_args, batch)),
    ("offsetof(sparsek_pool_args, heads)", core::mem::offset_of!(sparsek_pool_args, heads)),
    ("offsetof(sparsek_pool_args, seq)", core::mem::offset_of!(sparsek_pool_args, seq)),
    ("offsetof(sparsek_pool_args, head_size)", core::mem::offset_of!(sparsek_pool_args, head_size)),
    ("offsetof(sparsek_pool_args, block)", core::mem::offset_of!(sparsek_pool_args, block)),
    ("offsetof(sparsek_pool_args, x)", core::mem::offset_of!(sparsek_pool_args, x)),
    ("offsetof(sparsek_pool_args, stride_x)", core::mem::offset_of!(sparsek_pool_args, stride_x)),
    ("offsetof(sparsek_pool_args, out)", core::mem::offset_of!(sparsek_pool_args, out)),
    ("offsetof(sparsek_pool_args, dtype)", core::mem::offset_of!(sparsek_pool_args, dtype)),
    ("offsetof(sparsek_pool_args, memory)", core::mem::offset_of!(sparsek_pool_args, memory)),
    ("offsetof(sparsek_pool_args, stream)", core::mem::offset_of!(sparsek_pool_args, stream)),
    ("sizeof(sparsek_dense_time_args)", size_of::<sparsek_dense_time_args>()),
    ("offsetof(sparsek_dense_time_args, abi_size)", core::mem::offset_of!(sparsek_dense_time_args, abi_size)),
    ("offsetof(sparsek_dense_time_args, m)", core::mem::offset_of!(sparsek_dense_time_args, m)),
    ("offsetof(sparsek_dense_time_args, n)", core::mem::offset_of!(sparsek_dense_time_args, n)),
    ("offsetof(sparsek_dense_time_args, k)", core::mem::offset_of!(sparsek_dense_time_args, k)),
    ("offsetof(sparsek_dense_time_args, dtype)", core::mem::offset_of!(sparsek_dense_time_args, dtype)),
    ("offsetof(sparsek_dense_time_args, set_count)", core::mem::offset_of!(sparsek_dense_time_args, set_count)),
    ("offsetof(sparsek_dense_time_args, a)", core::mem::offset_of!(sparsek_dense_time_args, a)),
    ("offsetof(sparsek_dense_time_args, b)", core::mem::offset_of!(sparsek_dense_time_args, b)),
    ("offsetof(sparsek_dense_time_args, c)", core::mem::offset_of!(sparsek_dense_time_args, c)),
    ("offsetof(sparsek_dense_time_args, warmup)", core::mem::offset_of!(sparsek_dense_time_args, warmup)),
    ("offsetof(sparsek_dense_time_args, repeats)", core::mem::offset_of!(sparsek_dense_time_args, repeats)),
    ("offsetof(sparsek_dense_time_args, stream)", core::mem::offset_of!(sparsek_dense_time_args, stream)),
    ("sizeof(sparsek_check_args)", size_of::<sparsek_check_args>()),
    ("offsetof(sparsek_check_args, abi_size)", core::mem::offset_of!(sparsek_check_args, abi_size)),
    ("offsetof(sparsek_check_args, a)", core::mem::offset_of!(sparsek_check_args, a)),
    ("offsetof(sparsek_check_args, n)", core::mem::offset_of!(sparsek_check_args, n)),
    ("offsetof(sparsek_check_args, b)", core::mem::offset_of!(sparsek_check_args, b)),
    ("offsetof(sparsek_check_args, ldb)", core::mem::offset_of!(sparsek_check_args, ldb)),
    ("offsetof(sparsek_check_args, c0)", core::mem::offset_of!(sparsek_check_args, c0)),
    ("offsetof(sparsek_check_args, c)", core::mem::offset_of!(sparsek_check_args, c)),
    ("offsetof(sparsek_check_args, ldc)", core::mem::offset_of!(sparsek_check_args, ldc)),
    ("offsetof(sparsek_check_args, alpha)", core::mem::offset_of!(sparsek_check_args, alpha)),
    ("offsetof(sparsek_check_args, beta)", core::mem::offset_of!(sparsek_check_args, beta)),
    ("offsetof(sparsek_check_args, unit_roundoff)", core::mem::offset_of!(sparsek_check_args, unit_roundoff)),
    ("offsetof(sparsek_check_args, threads)", core::mem::offset_of!(sparsek_check_args, threads)),
    ("offsetof(sparsek_check_args, reserved)", core::mem::offset_of!(sparsek_check_args, reserved)),
    ("offsetof(sparsek_check_args, dtype_c)", core::mem::offset_of!(sparsek_check_args, dtype_c)),
    ("offsetof(sparsek_check_args, bias_kind)", core::mem::offset_of!(sparsek_check_args, bias_kind)),
    ("offsetof(sparsek_check_args, activation)", core::mem::offset_of!(sparsek_check_args, activation)),
    ("offsetof(sparsek_check_args, reserved2)", core::mem::offset_of!(sparsek_check_args, reserved2)),
    ("offsetof(sparsek_check_args, bias)", core::mem::offset_of!(sparsek_check_args, bias)),
    ("offsetof(sparsek_check_args, product_roundoff)", core::mem::offset_of!(sparsek_check_args, product_roundoff)),
    ("offsetof(sparsek_check_args, op)", core::mem::offset_of!(sparsek_check_args, op)),
    ("offsetof(sparsek_check_args, order_b)", core::mem::offset_of!(sparsek_check_args, order_b)),
    ("offsetof(sparsek_check_args, order_c)", core::mem::offset_of!(sparsek_check_args, order_c)),
    ("offsetof(sparsek_check_args, order_x)", core::mem::offset_of!(sparsek_check_args, order_x)),
    ("offsetof(sparsek_check_args, x)", core::mem::offset_of!(sparsek_check_args, x)),
    ("offsetof(sparsek_check_args, ldx)", core::mem::offset_of!(sparsek_check_args, ldx)),
    ("offsetof(sparsek_check_args, dtype_b)", core::mem::offset_of!(sparsek_check_args, dtype_b)),
    ("offsetof(sparsek_check_args, reserved3)", core::mem::offset_of!(sparsek_check_args, reserved3)),
    ("sizeof(sparsek_check_report)", size_of::<sparsek_check_report>()),
    ("offsetof(sparsek_check_report, abi_size)", core::mem::offset_of!(sparsek_check_report, abi_size)),
    ("offsetof(sparsek_check_report, elements)", core::mem::offset_of!(sparsek_check_report, elements)),
    ("offsetof(sparsek_check_report, failures)", core::mem::offset_of!(sparsek_check_report, failures)),
    ("offsetof(sparsek_check_report, max_abs_c)", core::mem::offset_of!(sparsek_check_report, max_abs_c)),
    ("offsetof(sparsek_check_report, max_error)", core::mem::offset_of!(sparsek_check_report, max_error)),
    ("offsetof(sparsek_check_report, max_ratio)", core::mem::offset_of!(sparsek_check_report, max_ratio)),
    ("offsetof(sparsek_check_report, worst_row)", core::mem::offset_of!(sparsek_check_report, worst_row)),
    ("offsetof(sparsek_check_report, worst_col)", core::mem::offset_of!(sparsek_check_report, worst_col)),
    ("offsetof(sparsek_check_report, worst_c)", core::mem::offset_of!(sparsek_check_report, worst_c)),
    ("offsetof(sparsek_check_report, worst_ref)", core::mem::offset_of!(sparsek_check_report, worst_ref)),
    ("offsetof(sparsek_check_report, worst_bound)", core::mem::offset_of!(sparsek_check_report, worst_bound)),
    ("offsetof(sparsek_check_report, first_row)", core::mem::offset_of!(sparsek_check_report, first_row)),
    ("offsetof(sparsek_check_report, first_col)", core::mem::offset_of!(sparsek_check_report, first_col)),
    ("sizeof(sparsek_tuning_cache_info)", size_of::<sparsek_tuning_cache_info>()),
    ("offsetof(sparsek_tuning_cache_info, abi_size)", core::mem::offset_of!(sparsek_tuning_cache_info, abi_size)),
    ("offsetof(sparsek_tuning_cache_info, path)", core::mem::offset_of!(sparsek_tuning_cache_info, path)),
    ("offsetof(sparsek_tuning_cache_info, fault)", core::mem::offset_of!(sparsek_tuning_cache_info, fault)),
    ("offsetof(sparsek_tuning_cache_info, build)", core::mem::offset_of!(sparsek_tuning_cache_info, build)),
    ("offsetof(sparsek_tuning_cache_info, entries)", core::mem::offset_of!(sparsek_tuning_cache_info, entries)),
    ("offsetof(sparsek_tuning_cache_info, state)", core::mem::offset_of!(sparsek_tuning_cache_info, state)),
    ("offsetof(sparsek_tuning_cache_info, reserved)", core::mem::offset_of!(sparsek_tuning_cache_info, reserved)),
    ("sizeof(sparsek_tuning_entry)", size_of::<sparsek_tuning_entry>()),
    ("offsetof(sparsek_tuning_entry, abi_size)", core::mem::offset_of!(sparsek_tuning_entry, abi_size)),
    ("offsetof(sparsek_tuning_entry, id)", core::mem::offset_of!(sparsek_tuning_entry, id)),
    ("offsetof(sparsek_tuning_entry, device)", core::mem::offset_of!(sparsek_tuning_entry, device)),
    ("offsetof(sparsek_tuning_entry, build)", core::mem::offset_of!(sparsek_tuning_entry, build)),
    ("offsetof(sparsek_tuning_entry, op)", core::mem::offset_of!(sparsek_tuning_entry, op)),
    ("offsetof(sparsek_tuning_entry, m)", core::mem::offset_of!(sparsek_tuning_entry, m)),
    ("offsetof(sparsek_tuning_entry, n)", core::mem::offset_of!(sparsek_tuning_entry, n)),
    ("offsetof(sparsek_tuning_entry, k)", core::mem::offset_of!(sparsek_tuning_entry, k)),
    ("offsetof(sparsek_tuning_entry, block_m)", core::mem::offset_of!(sparsek_tuning_entry, block_m)),
    ("offsetof(sparsek_tuning_entry, block_k)", core::mem::offset_of!(sparsek_tuning_entry, block_k)),
    ("offsetof(sparsek_tuning_entry, measured)", core::mem::offset_of!(sparsek_tuning_entry, measured)),
    ("offsetof(sparsek_tuning_entry, sm_count)", core::mem::offset_of!(sparsek_tuning_entry, sm_count)),
    ("offsetof(sparsek_tuning_entry, dtype)", core::mem::offset_of!(sparsek_tuning_entry, dtype)),
    ("offsetof(sparsek_tuning_entry, dtype_c)", core::mem::offset_of!(sparsek_tuning_entry, dtype_c)),
    ("offsetof(sparsek_tuning_entry, bias)", core::mem::offset_of!(sparsek_tuning_entry, bias)),
    ("offsetof(sparsek_tuning_entry, activation)", core::mem::offset_of!(sparsek_tuning_entry, activation)),
    ("offsetof(sparsek_tuning_entry, density_class)", core::mem::offset_of!(sparsek_tuning_entry, density_class)),
    ("offsetof(sparsek_tuning_entry, spread_class)", core::mem::offset_of!(sparsek_tuning_entry, spread_class)),
    ("offsetof(sparsek_tuning_entry, union_class)", core::mem::offset_of!(sparsek_tuning_entry, union_class)),
    ("offsetof(sparsek_tuning_entry, candidates)", core::mem::offset_of!(sparsek_tuning_entry, candidates)),
    ("offsetof(sparsek_tuning_entry, reserved)", core::mem::offset_of!(sparsek_tuning_entry, reserved)),
    ("offsetof(sparsek_tuning_entry, dtype_b)", core::mem::offset_of!(sparsek_tuning_entry, dtype_b)),
    ("offsetof(sparsek_tuning_entry, kept_values)", core::mem::offset_of!(sparsek_tuning_entry, kept_values)),
    ("sizeof(sparsek_tuning_candidate)", size_of::<sparsek_tuning_candidate>()),
    ("offsetof(sparsek_tuning_candidate, abi_size)", core::mem::offset_of!(sparsek_tuning_candidate, abi_size)),
    ("offsetof(sparsek_tuning_candidate, kernel)", core::mem::offset_of!(sparsek_tuning_candidate, kernel)),
    ("offsetof(sparsek_tuning_candidate, seconds)", core::mem::offset_of!(sparsek_tuning_candidate, seconds)),
    ("offsetof(sparsek_tuning_candidate, spread)", core::mem::offset_of!(sparsek_tuning_candidate, spread)),
    ("offsetof(sparsek_tuning_candidate, setup_seconds)", core::mem::offset_of!(sparsek_tuning_candidate, setup_seconds)),
    ("sizeof(sparsek_tuning_change)", size_of::<sparsek_tuning_change>()),
    ("offsetof(sparsek_tuning_change, abi_size)", core::mem::offset_of!(sparsek_tuning_change, abi_size)),
    ("offsetof(sparsek_tuning_change, entries)", core::mem::offset_of!(sparsek_tuning_change, entries)),
    ("offsetof(sparsek_tuning_change, warning)", core::mem::offset_of!(sparsek_tuning_change, warning)),
    ("sizeof(sparsek_api)", size_of::<sparsek_api>()),
];
