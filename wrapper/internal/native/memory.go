// SPDX-License-Identifier: Apache-2.0

package native

// #include "shim.h"
import "C"

import "unsafe"

// BufferCreate calls buffer_create.
func (l *Library) BufferCreate(context unsafe.Pointer, bytes int) (unsafe.Pointer, error) {
	var out unsafe.Pointer
	err := end("create buffer", C.shim_buffer_create(l.api, (*C.sparsek_context)(context), C.size_t(bytes), &out))
	return out, err
}

// BufferDestroy calls buffer_destroy.
func (l *Library) BufferDestroy(context, buffer unsafe.Pointer) error {
	return end("destroy buffer", C.shim_buffer_destroy(l.api, (*C.sparsek_context)(context), buffer))
}

// BufferWrite calls buffer_write. host must stay valid until the stream has passed the copy.
func (l *Library) BufferWrite(context, buffer, host unsafe.Pointer, bytes int, stream uintptr) error {
	return end("write buffer", C.shim_buffer_write(l.api, (*C.sparsek_context)(context), buffer, host, C.size_t(bytes), C.uintptr_t(stream)))
}

// BufferRead calls buffer_read. host must stay valid until the stream has passed the copy.
func (l *Library) BufferRead(context, host, buffer unsafe.Pointer, bytes int, stream uintptr) error {
	return end("read buffer", C.shim_buffer_read(l.api, (*C.sparsek_context)(context), host, buffer, C.size_t(bytes), C.uintptr_t(stream)))
}

// BufferFill calls buffer_fill.
func (l *Library) BufferFill(context, buffer unsafe.Pointer, value byte, bytes int, stream uintptr) error {
	return end("fill buffer", C.shim_buffer_fill(l.api, (*C.sparsek_context)(context), buffer, C.int32_t(value), C.size_t(bytes), C.uintptr_t(stream)))
}

// StreamCreate calls stream_create.
func (l *Library) StreamCreate(context unsafe.Pointer) (uintptr, error) {
	var out C.uintptr_t
	err := end("create stream", C.shim_stream_create(l.api, (*C.sparsek_context)(context), &out))
	return uintptr(out), err
}

// StreamDestroy calls stream_destroy.
func (l *Library) StreamDestroy(context unsafe.Pointer, stream uintptr) error {
	return end("destroy stream", C.shim_stream_destroy(l.api, (*C.sparsek_context)(context), C.uintptr_t(stream)))
}

// StreamSynchronize calls stream_synchronize.
func (l *Library) StreamSynchronize(context unsafe.Pointer, stream uintptr) error {
	return end("wait for stream", C.shim_stream_synchronize(l.api, (*C.sparsek_context)(context), C.uintptr_t(stream)))
}

// StreamDone calls stream_query.
func (l *Library) StreamDone(context unsafe.Pointer, stream uintptr) (bool, error) {
	var done C.int32_t
	err := end("poll stream", C.shim_stream_query(l.api, (*C.sparsek_context)(context), C.uintptr_t(stream), &done))
	return done != 0, err
}
