// SPDX-License-Identifier: Apache-2.0

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use sparsek_sys as sys;

use crate::context::text;
use crate::heads::View;
use crate::pattern::extent;
use crate::{AttentionOptions, Bsr, Context, Element, Error, HeadsMut, HeadsRef, Index, Result, Stream, VecRef};

/// How attention over one layout is computed: for each batch and head O = softmax(S) V with S = scale Q K^T, over the keys that
/// a query sees, and the gradients of that. T is the type of Q, K, V, O and the gradients.
#[derive(Debug)]
pub struct Attention<T: Element> {
    context: Context,
    handle: NonNull<sys::sparsek_attention>,
    options: AttentionOptions,
    elements: PhantomData<fn(T)>,
}

/// What an [`Attention`] is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AttentionInfo {
    /// The kernel of the forward pass.
    pub kernel: String,
    /// The kernel of the backward pass, or "" where the back-end has none.
    pub backward: String,
    /// Blocks that a call with sequences of full length computes, over all batches and heads.
    pub blocks: i64,
    /// Of these, blocks that a rule or the end of a sequence cuts.
    pub partial_blocks: i64,
    /// Pairs of a query and a key that it sees: each is 2 (head_size + head_size_v) operations of a forward pass.
    pub pairs: i64,
    /// The workspace of a forward pass in device memory, in bytes.
    pub forward_bytes: i64,
    /// The workspace of a backward pass in device memory, in bytes.
    pub backward_bytes: i64,
}

/// One forward pass, for [`Attention::forward`].
#[derive(Debug)]
pub struct AttentionForward<'a, T: Element> {
    /// (batch, heads, seq, head_size)
    pub q: HeadsRef<'a, T>,
    /// (batch, heads_k, seq_k, head_size)
    pub k: HeadsRef<'a, T>,
    /// (batch, heads_k, seq_k, head_size_v)
    pub v: HeadsRef<'a, T>,
    /// (batch, heads, seq, head_size_v). A query that sees no key has 0.
    pub o: HeadsMut<'a, T>,
    /// The logarithm of the sum of exp(S), (batch, heads, seq) without gaps. A query that sees no key has -Inf.
    pub lse: Option<HeadsMut<'a, T::Sum>>,
    /// How long each sequence of queries and of keys is, (batch), in the back-end's memory. Beyond, O is 0 and LSE -Inf.
    pub lengths: [Option<VecRef<'a, i32>>; 2],
}

/// One backward pass, for [`Attention::backward`]. Gradients that are None are not computed.
#[derive(Debug)]
pub struct AttentionBackward<'a, T: Element> {
    /// As of the forward pass.
    pub q: HeadsRef<'a, T>,
    /// As of the forward pass.
    pub k: HeadsRef<'a, T>,
    /// As of the forward pass.
    pub v: HeadsRef<'a, T>,
    /// What the forward pass gave.
    pub o: HeadsRef<'a, T>,
    /// What the forward pass gave, without gaps.
    pub lse: HeadsRef<'a, T::Sum>,
    /// As of the forward pass.
    pub lengths: [Option<VecRef<'a, i32>>; 2],
    /// The gradient of O.
    pub grad_o: HeadsRef<'a, T>,
    /// The gradient of Q, which is written.
    pub grad_q: Option<HeadsMut<'a, T>>,
    /// The gradient of K, which is written.
    pub grad_k: Option<HeadsMut<'a, T>>,
    /// The gradient of V, which is written.
    pub grad_v: Option<HeadsMut<'a, T>>,
}

// SAFETY: the library's handles may be used from several threads at once.
unsafe impl<T: Element> Send for Attention<T> {}
// SAFETY: as above.
unsafe impl<T: Element> Sync for Attention<T> {}

impl<T: Element> Drop for Attention<T> {
    fn drop(&mut self) {
        // SAFETY: the handle is destroyed once; its memory outlives calls that were enqueued.
        unsafe { (self.context.api().attention_destroy)(self.handle.as_ptr()) }
    }
}

impl<T: Element> Attention<T> {
    /// Attention over the blocks of a layout, which is copied. Its block rows are, one after the other, those of each layout
    /// batch and layout head, of which each has ceil(seq / block rows); its columns are keys.
    ///
    /// # Errors
    ///
    /// [`Error::Extent`] where the layout's arrays do not have the lengths that its extents ask for; the library's.
    pub fn new<I: Index>(context: &Context, layout: &Bsr<'_, I>, options: &AttentionOptions) -> Result<Attention<T>> {
        Attention::made(context, Some(layout.checked(T::DTYPE)?), options)
    }

    /// Attention over all blocks.
    ///
    /// # Errors
    ///
    /// The library's.
    pub fn dense(context: &Context, options: &AttentionOptions) -> Result<Attention<T>> {
        Attention::made(context, None, options)
    }

    fn made(context: &Context, layout: Option<sys::sparsek_bsr>, options: &AttentionOptions) -> Result<Attention<T>> {
        options.with_raw(|mut asked| {
            asked.dtype = T::DTYPE;
            asked.layout = layout.as_ref().map_or(ptr::null(), ptr::from_ref);
            let mut handle = ptr::null_mut();
            // SAFETY: the context lives, and the addresses are valid for the call.
            let status = unsafe { (context.api().attention_create)(context.handle(), &asked, &mut handle) };
            let Some(handle) = NonNull::new(handle).filter(|_| status == sys::SPARSEK_OK) else {
                return Err(Error::of_call(context.api(), "attention_create", status));
            };
            Ok(Attention {
                context: context.clone(),
                handle,
                options: options.clone(),
                elements: PhantomData,
            })
        })
    }

    /// What it is. This waits for nothing.
    ///
    /// # Errors
    ///
    /// [`crate::Status::BadAbiSize`] where the library is older than this crate.
    pub fn info(&self) -> Result<AttentionInfo> {
        let mut info = sys::sparsek_attention_info::default();
        // SAFETY: the handle lives, and the address is valid for the call.
        let status = unsafe { (self.context.api().attention_info)(self.handle.as_ptr(), &mut info) };
        self.context.check("attention_info", status)?;
        // SAFETY: texts live as long as the handle.
        let (kernel, backward) = unsafe { (text(info.kernel), text(info.backward)) };
        Ok(AttentionInfo {
            kernel,
            backward,
            blocks: info.blocks,
            partial_blocks: info.partial,
            pairs: info.pairs,
            forward_bytes: info.forward_bytes,
            backward_bytes: info.backward_bytes,
        })
    }

    /// Computes O, and LSE, and waits for them.
    ///
    /// # Errors
    ///
    /// [`Error::Extent`] where operands do not have the attention's extents, [`Error::Memory`] where they are elsewhere than its
    /// back-end needs them, and the library's.
    pub fn forward(&self, call: AttentionForward<'_, T>) -> Result<()> {
        // SAFETY: the operands are borrowed until this returns, and by then the work has ended.
        unsafe { self.start_forward(call, ptr::null_mut()) }?;
        self.context.wait()
    }

    /// Computes gradients, the same bits each time, and waits for them.
    ///
    /// # Errors
    ///
    /// As [`Attention::forward`].
    pub fn backward(&self, call: AttentionBackward<'_, T>) -> Result<()> {
        // SAFETY: the operands are borrowed until this returns, and by then the work has ended.
        unsafe { self.start_backward(call, ptr::null_mut()) }?;
        self.context.wait()
    }

    /// Puts a forward pass into a stream and does not wait for it, except on the CPU.
    ///
    /// # Safety
    ///
    /// As of [`Plan::enqueue`](crate::Plan::enqueue).
    ///
    /// # Errors
    ///
    /// As [`Attention::forward`].
    pub unsafe fn enqueue_forward(&self, call: AttentionForward<'_, T>, stream: &Stream) -> Result<()> {
        // SAFETY: of the caller.
        unsafe { self.start_forward(call, stream.as_raw()) }
    }

    /// Puts a backward pass into a stream and does not wait for it, except on the CPU.
    ///
    /// # Safety
    ///
    /// As of [`Plan::enqueue`](crate::Plan::enqueue).
    ///
    /// # Errors
    ///
    /// As [`Attention::forward`].
    pub unsafe fn enqueue_backward(&self, call: AttentionBackward<'_, T>, stream: &Stream) -> Result<()> {
        // SAFETY: of the caller.
        unsafe { self.start_backward(call, stream.as_raw()) }
    }

    /// # Safety
    ///
    /// The operands live until the work has ended.
    unsafe fn start_forward(&self, call: AttentionForward<'_, T>, stream: sys::sparsek_stream) -> Result<()> {
        let AttentionForward { q, k, v, o, lse, .. } = call;
        let mut args = self.inputs(q, k, v, call.lengths, stream)?;
        (args.o, args.stride_o) = self.operand("O", o.view, self.extents(0, 1), true)?;
        if let Some(lse) = lse {
            args.lse = self.gapless("LSE", lse.view)?;
        }
        // SAFETY: the handle lives, and the operands have the extents that it needs.
        let status = unsafe { (self.context.api().attention_forward)(self.handle.as_ptr(), &args) };
        self.context.check("attention_forward", status)
    }

    /// # Safety
    ///
    /// The operands live until the work has ended.
    unsafe fn start_backward(&self, call: AttentionBackward<'_, T>, stream: sys::sparsek_stream) -> Result<()> {
        let mut args = self.inputs(call.q, call.k, call.v, call.lengths, stream)?;
        (args.o, args.stride_o) = self.operand("O", call.o.view, self.extents(0, 1), false)?;
        args.lse = self.gapless("LSE", call.lse.view)?;
        let (grad_o, stride) = self.operand("the gradient of O", call.grad_o.view, self.extents(0, 1), false)?;
        (args.grad_o, args.stride_grad_o) = (grad_o, stride);
        if let Some(grad) = call.grad_q {
            (args.grad_q, args.stride_grad_q) =
                self.operand("the gradient of Q", grad.view, self.extents(0, 0), true)?;
        }
        if let Some(grad) = call.grad_k {
            (args.grad_k, args.stride_grad_k) =
                self.operand("the gradient of K", grad.view, self.extents(1, 0), true)?;
        }
        if let Some(grad) = call.grad_v {
            (args.grad_v, args.stride_grad_v) =
                self.operand("the gradient of V", grad.view, self.extents(1, 1), true)?;
        }
        // SAFETY: the handle lives, and the operands have the extents that it needs.
        let status = unsafe { (self.context.api().attention_backward)(self.handle.as_ptr(), &args) };
        self.context.check("attention_backward", status)
    }

    /// The arguments that both passes have.
    fn inputs(
        &self,
        q: HeadsRef<'_, T>,
        k: HeadsRef<'_, T>,
        v: HeadsRef<'_, T>,
        lengths: [Option<VecRef<'_, i32>>; 2],
        stream: sys::sparsek_stream,
    ) -> Result<sys::sparsek_attention_args> {
        let (q, stride_q) = self.operand("Q", q.view, self.extents(0, 0), false)?;
        let (k, stride_k) = self.operand("K", k.view, self.extents(1, 0), false)?;
        let (v, stride_v) = self.operand("V", v.view, self.extents(1, 1), false)?;
        let [lengths_q, lengths_k] = lengths;
        Ok(sys::sparsek_attention_args {
            q: q.cast_const(),
            k: k.cast_const(),
            v: v.cast_const(),
            stride_q,
            stride_k,
            stride_v,
            lengths_q: self.lengths("lengths of queries", lengths_q)?,
            lengths_k: self.lengths("lengths of keys", lengths_k)?,
            stream,
            ..Default::default()
        })
    }

    /// Those of queries or keys, of head_size or head_size_v.
    fn extents(&self, keys: usize, size: usize) -> [usize; 4] {
        let AttentionOptions {
            batch,
            heads,
            seq,
            size: sizes,
            ..
        } = self.options;
        [batch, heads[keys], seq[keys], sizes[size]]
    }

    /// The address and the strides of an operand, where it has these extents.
    fn operand<U>(
        &self,
        what: &str,
        view: View<U>,
        extents: [usize; 4],
        written: bool,
    ) -> Result<(*mut c_void, [i64; 3])> {
        view.check(what, extents, self.context.place(), written)?;
        let [batch, head, row] = view.strides.map(extent);
        Ok((view.address.cast(), [batch?, head?, row?]))
    }

    fn gapless<U>(&self, what: &str, view: View<U>) -> Result<*mut c_void> {
        let [batch, heads, seq, _] = self.extents(0, 0);
        let (address, strides) = self.operand(what, view, [batch, heads, seq, 1], true)?;
        match strides {
            [0, 0, 0] => Ok(address),
            _ => Err(Error::Extent(format!(
                "{what} has no strides: it is (batch, heads, seq) without gaps"
            ))),
        }
    }

    fn lengths(&self, what: &str, lengths: Option<VecRef<'_, i32>>) -> Result<*const i32> {
        let Some(lengths) = lengths else { return Ok(ptr::null()) };
        if lengths.len != self.options.batch {
            return Err(Error::Extent(format!(
                "{} {what} for a batch of {}",
                lengths.len, self.options.batch
            )));
        }
        lengths.place.must_be(self.context.place(), what)?;
        Ok(lengths.address)
    }
}
