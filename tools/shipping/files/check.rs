//! The same as check.c by the interface of Rust. package.rs is made for each package.

mod package;

use package::{Error, Status, ARRAY_BYTES, ARRAY_TYPES, ARGUMENTS, WAITS};
use std::ffi::{c_char, c_int, c_void, CString};

const THREADS: usize = 4;
const CALLS: usize = 10;
const REPLAYS: usize = 3;

extern "C" {
    fn harness_attach();
    fn harness_allocate(bytes: usize) -> *mut c_void;
    fn harness_stream() -> *mut c_void;
    fn harness_wait(stream: *mut c_void);
    fn harness_fill(memory: *mut c_void, byte: u8, bytes: usize, stream: *mut c_void);
    fn harness_read(memory: *mut c_void, bytes: usize, folder: *const c_char, argument: c_int);
    fn harness_wrong(memory: *const c_void, bytes: usize, kind: c_char, folder: *const c_char, result: c_int) -> usize;
    fn harness_can_capture() -> c_int;
    fn harness_capture(stream: *mut c_void);
    fn harness_captured(stream: *mut c_void) -> *mut c_void;
    fn harness_replay(graph: *mut c_void, stream: *mut c_void);
}

struct Arrays {
    memory: Vec<*mut c_void>,
    scratch: *mut c_void,
    stream: *mut c_void,
    folder: CString,
}

impl Arrays {
    fn new(folder: &str) -> Arrays {
        let folder = CString::new(folder).unwrap();
        let allocate = |(a, bytes): (usize, &usize)| unsafe {
            let memory = harness_allocate(*bytes);
            if a < ARGUMENTS {
                harness_read(memory, *bytes, folder.as_ptr(), a as c_int);
            }
            memory
        };
        let memory = ARRAY_BYTES.iter().enumerate().map(allocate).collect();
        let scratch = unsafe { harness_allocate(package::scratch_bytes()) };
        Arrays { memory, scratch, stream: unsafe { harness_stream() }, folder }
    }

    fn forget(&self) {
        for a in ARGUMENTS..ARRAY_BYTES.len() {
            unsafe { harness_fill(self.memory[a], 0xA5, ARRAY_BYTES[a], self.stream) };
        }
    }

    fn run(&self) -> Result<(), Error> {
        unsafe { package::run(&self.memory, self.scratch, self.stream) }
    }

    fn wrong(&self) -> usize {
        unsafe { harness_wait(self.stream) };
        let of = |a: usize| unsafe {
            let kind = ARRAY_TYPES[a] as c_char;
            harness_wrong(self.memory[a], ARRAY_BYTES[a], kind, self.folder.as_ptr(), (a - ARGUMENTS) as c_int)
        };
        (ARGUMENTS..ARRAY_BYTES.len()).map(of).sum()
    }
}

fn wrong_in_a_thread(folder: &str) -> usize {
    unsafe { harness_attach() };
    let own = Arrays::new(folder);
    let call = |_| {
        own.forget();
        own.run().unwrap();
        own.wrong()
    };
    (0..CALLS).map(call).sum()
}

fn wrong_when_captured(own: &Arrays) -> usize {
    own.forget();
    unsafe { harness_capture(own.stream) };
    let ran = own.run();
    let graph = unsafe { harness_captured(own.stream) };
    if WAITS {
        return matches!(ran, Err(error) if error.status == Status::CannotCapture).then_some(0).unwrap_or(1);
    }
    ran.unwrap();
    let replay = |_| {
        own.forget();
        unsafe { harness_replay(graph, own.stream) };
        own.wrong()
    };
    (0..REPLAYS).map(replay).sum()
}

fn main() {
    let folder = std::env::args().nth(1).expect("a folder");
    unsafe { harness_attach() };
    let threads: Vec<_> = (0..THREADS)
        .map(|_| folder.clone())
        .map(|folder| std::thread::spawn(move || wrong_in_a_thread(&folder)))
        .collect();
    let mut wrong: usize = threads.into_iter().map(|each| each.join().unwrap()).sum();
    let own = Arrays::new(&folder);
    own.forget();
    own.run().unwrap();
    wrong += own.wrong();
    if unsafe { harness_can_capture() } != 0 {
        wrong += wrong_when_captured(&own);
    }
    unsafe { harness_wait(own.stream) };
    unsafe { package::unload(own.stream) }.unwrap();
    println!("{}", if wrong == 0 { "right" } else { "WRONG" });
    std::process::exit((wrong != 0) as i32);
}
