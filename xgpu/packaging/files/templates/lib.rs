//! @TITLE@
//!
//! The Rust interface, of xgpu @VERSION@, over that of C in `include/xgpu/@P@.h`. Arrays are on the GPU; with the feature
//! `host` the same kernels run on the processor, on slices.
#![allow(clippy::too_many_arguments)]

use std::ffi::{c_char, c_void, CStr};
use std::fmt;
use std::marker::PhantomData;

@TYPES@mod raw {
    use super::*;

    #[repr(C)]
    #[derive(Default)]
    pub struct Extents {
@RAW_EXTENTS@
        pub scratch_bytes: usize,
    }

    extern "C" {
        pub fn @P@_get_extents(@RAW_SIZES@extents: *mut Extents) -> u32;
        pub fn @P@_prepare(stream: *mut c_void) -> u32;
        pub fn @P@_unload(stream: *mut c_void) -> u32;
        pub fn @P@_run(
@RAW_PARAMETERS@
            scratch: *mut c_void,
            scratch_bytes: usize,
            stream: *mut c_void,
        ) -> u32;
        pub fn @P@_error_message() -> *const c_char;
    }
}

/// What a call that failed returns: the numbers of `@P@_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u32)]
pub enum Status {
@STATUSES@
}

impl Status {
    fn of(number: u32) -> Status {
        match number {
@STATUS_NUMBERS@
            _ => Status::InternalError,
        }
    }
}

/// Why a call failed.
#[derive(Clone, Debug)]
pub struct Error {
    pub status: Status,
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

fn check(number: u32) -> Result<(), Error> {
    if number == 0 {
        return Ok(());
    }
    // SAFETY: the text ends in a zero, and stays as it is until the next call of this thread that fails.
    let message = unsafe { CStr::from_ptr(raw::@P@_error_message()) };
    Err(Error { status: Status::of(number), message: message.to_string_lossy().into_owned() })
}

#[allow(dead_code)]
fn check_extent(name: &str, given: usize, needed: usize) -> Result<(), Error> {
    if given == needed {
        return Ok(());
    }
    let message = format!("@P@: '{name}' has {given} elements; it must have {needed}");
    Err(Error { status: Status::WrongExtent, message })
}

/// The alignment in bytes of scratch.
pub const SCRATCH_ALIGNMENT: usize = @SCRATCH_ALIGNMENT@;

/// How many elements each array has, and the bytes of scratch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents {
@PUBLIC_EXTENTS@
    pub scratch_bytes: usize,
}

/// Returns how large arrays and scratch are@FOR_SIZES@.
pub fn extents(@SIZES@) -> Result<Extents, Error> {
    let mut found = raw::Extents::default();
    // SAFETY: it is written to, and no longer than the call.
    check(unsafe { raw::@P@_get_extents(@SIZE_NAMES@&mut found) })?;
    Ok(Extents { @COPIED_EXTENTS@scratch_bytes: found.scratch_bytes })
}

/// A stream of the CUDA driver or runtime.
#[derive(Clone, Copy, Debug)]
pub struct Stream(*mut c_void);

impl Stream {
    /// The default stream of the current context.
    pub const DEFAULT: Stream = Stream(std::ptr::null_mut());

    /// Takes a `CUstream` or `cudaStream_t`.
    ///
    /// # Safety
    /// It is one, and is not destroyed as long as this, or a copy of it, is used.
    pub unsafe fn from_raw(stream: *mut c_void) -> Stream {
        Stream(stream)
    }
}

// SAFETY: the driver takes streams from any thread, and from several at once.
unsafe impl Send for Stream {}
unsafe impl Sync for Stream {}

/// An array on the GPU that a program reads.
#[derive(Clone, Copy, Debug)]
pub struct DeviceSlice<'a, T> {
    pointer: *const T,
    length: usize,
    memory: PhantomData<&'a [T]>,
}

impl<T> DeviceSlice<'_, T> {
    /// Takes the address and length of an array.
    ///
    /// # Safety
    /// The stream's context can read so many elements there, and nobody writes to them or frees them until all work
    /// that was added with this has ended.
    pub unsafe fn from_raw_parts(pointer: *const T, length: usize) -> Self {
        DeviceSlice { pointer, length, memory: PhantomData }
    }
}

// SAFETY: as references to slices.
unsafe impl<T: Sync> Send for DeviceSlice<'_, T> {}
unsafe impl<T: Sync> Sync for DeviceSlice<'_, T> {}

/// An array on the GPU that a program writes.
#[derive(Debug)]
pub struct DeviceSliceMut<'a, T> {
    pointer: *mut T,
    length: usize,
    memory: PhantomData<&'a mut [T]>,
}

impl<T> DeviceSliceMut<'_, T> {
    /// Takes the address and length of an array.
    ///
    /// # Safety
    /// The stream's context can read and write so many elements there, and nobody else uses or frees them until all
    /// work that was added with this has ended.
    pub unsafe fn from_raw_parts(pointer: *mut T, length: usize) -> Self {
        DeviceSliceMut { pointer, length, memory: PhantomData }
    }
}

// SAFETY: as exclusive references to slices.
unsafe impl<T: Send> Send for DeviceSliceMut<'_, T> {}

/// Loads the kernels for a stream's context, so that [`run`] need not: it cannot while the stream is being captured.
pub fn prepare(stream: Stream) -> Result<(), Error> {
    // SAFETY: who made the stream says that it is one.
    check(unsafe { raw::@P@_prepare(stream.0) })
}

/// Unloads the kernels of a stream's context.
///
/// # Safety
/// No work of this package is left there, and no other thread adds some.
pub unsafe fn unload(stream: Stream) -> Result<(), Error> {
    check(raw::@P@_unload(stream.0))
}

/// Adds the program to a stream, and @WAITS@.
///
@ARRAYS@
///
/// # Safety
/// Until the stream has done the work, nothing else writes to what it reads, or uses what it writes and the scratch; the
/// slices are only borrowed for the call.
pub unsafe fn run(
@PARAMETERS@
    scratch: &mut DeviceSliceMut<'_, u8>,
    stream: Stream,
) -> Result<(), Error> {
    let needed = extents(@SIZE_NAMES@)?;
    let _ = &needed;
@CHECKS@
    check(raw::@P@_run(@SIZE_NAMES@@POINTERS@scratch.pointer.cast(), scratch.length, stream.0))
}

/// Memory on the host for scratch.
#[cfg(feature = "host")]
#[derive(Clone, Copy)]
#[repr(C, align(@SCRATCH_ALIGNMENT@))]
struct Unit([u8; SCRATCH_ALIGNMENT]);

/// Runs the program on the processor.
///
@ARRAYS@
#[cfg(feature = "host")]
pub fn run_on_host(@HOST_PARAMETERS@) -> Result<(), Error> {
    let needed = extents(@SIZE_NAMES@)?;
    let units = needed.scratch_bytes.div_ceil(SCRATCH_ALIGNMENT);
    let mut scratch = vec![Unit([0; SCRATCH_ALIGNMENT]); units];
@CHECKS_ON_HOST@
    // SAFETY: the lengths are right, and the slices stay until the call has done its work.
    check(unsafe {
        raw::@P@_run(
            @SIZE_NAMES@@POINTERS_ON_HOST@scratch.as_mut_ptr().cast(),
            units * SCRATCH_ALIGNMENT,
            std::ptr::null_mut(),
        )
    })
}
