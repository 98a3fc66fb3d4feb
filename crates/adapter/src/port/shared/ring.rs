//! A ring of records in memory that two processes share: one writes, the other reads.
//!
//! ```text
//! page 0   magic │ head, asleep (the reader's) │ revoked (the writer's) │ who the writer is
//! data     record │ record │ record │ 0 …      mapped twice in a row, so that no record is ever split
//!          └ word: length, kind; stored last. The word after the last record is 0.
//! ```
//!
//! The reader looks at one word until it is not zero: a short record crosses between two processors as one cache line.
//! The other process is not trusted to keep to this: everything read from the ring is checked, and what it changes
//! meanwhile leads to wrong bytes, never to access outside the ring.

#![allow(
    unsafe_code,
    reason = "memory that another process writes has no safe interface"
)]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use super::barrier;

/// Bytes of records that a ring holds.
pub(crate) const DATA: usize = 1 << 20;
const HEADER: usize = 4096;
/// Records start at multiples of a cache line.
const LINE: usize = 64;
/// The word before each record.
pub(crate) const WORD: usize = size_of::<u64>();
/// The longest record, word included: several have to fit.
pub(crate) const LONGEST: usize = DATA / 4;
const MAGIC: u64 = u64::from_le_bytes(*b"softfab1");

#[repr(C, align(64))]
struct Line<T>(T);

/// Page 0. Everything in it is atomic, so sharing it is no data race.
#[repr(C)]
struct Header {
    magic: Line<AtomicU64>,
    /// Where the reader is, in bytes since the start.
    head: Line<AtomicU64>,
    /// The reader has to be woken.
    asleep: Line<AtomicU32>,
    /// Records before this place no longer stand for memory that may be read.
    revoked: Line<AtomicU64>,
    /// The writer: its process, an address in it and what is there, so that the reader can try to read its memory.
    writer: Line<Writer>,
    /// What came of it.
    readable: Line<AtomicU32>,
    /// The reader puts a barrier into every processor before it sleeps, so that the writer needs none.
    barrier: Line<AtomicU32>,
}

#[repr(C)]
struct Writer {
    process: AtomicU32,
    address: AtomicU64,
    value: AtomicU64,
}

/// What the writer of a ring says about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WriterIdentity {
    pub(crate) process: u32,
    pub(crate) address: u64,
    pub(crate) value: u64,
}

/// A mapped ring.
#[derive(Debug)]
struct Mapping {
    base: *mut u8,
}

// SAFETY: the memory is shared by its nature, and reached through atomics and raw copies only.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps header and data, and the data once more behind it.
    fn new(fd: &OwnedFd) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let length = HEADER + 2 * DATA;
        // SAFETY: reserves addresses that nobody uses.
        let base = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                length,
                ProtFlags::empty(),
                MapFlags::PRIVATE,
            )?
        };
        let mapping = Self { base: base.cast() };
        // SAFETY: both ranges are within the reservation, and replace it.
        unsafe {
            let flags = MapFlags::SHARED | MapFlags::FIXED;
            mmap(base, HEADER + DATA, protection, flags, fd, 0)?;
            let again = mapping.base.add(HEADER + DATA).cast();
            mmap(again, DATA, protection, flags, fd, HEADER as u64)?;
        }
        Ok(mapping)
    }

    fn header(&self) -> &Header {
        // SAFETY: page 0 of the mapping is as long as a header and aligned; all fields are atomic.
        unsafe { &*self.base.cast::<Header>() }
    }

    /// The address of a place in the data.
    fn at(&self, place: u64) -> *mut u8 {
        // SAFETY: within the first copy of the data.
        unsafe { self.base.add(HEADER + (place as usize & (DATA - 1))) }
    }

    fn word(&self, place: u64) -> &AtomicU64 {
        // SAFETY: places are multiples of a line, so the word is aligned and within the data.
        unsafe { &*self.at(place).cast::<AtomicU64>() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, to which nobody has a reference any more.
        unsafe {
            let _ = munmap(self.base.cast(), HEADER + 2 * DATA);
        }
    }
}

/// The writing end.
#[derive(Debug)]
pub(crate) struct Producer {
    mapping: Mapping,
    tail: u64,
    /// Where the reader was when it was last looked.
    head: u64,
    /// Words between here and the tail are zero.
    clear: u64,
}

impl Producer {
    /// A new ring, and the descriptor by which another process attaches to it.
    pub(crate) fn create(writer: WriterIdentity) -> io::Result<(Self, OwnedFd)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = rustix::fs::memfd_create("softfabric-ring", flags)?;
        ftruncate(&fd, (HEADER + DATA) as u64)?;
        // Neither end can cut the memory away under the other.
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let mapping = Mapping::new(&fd)?;
        let header = mapping.header();
        header
            .writer
            .0
            .process
            .store(writer.process, Ordering::Relaxed);
        header
            .writer
            .0
            .address
            .store(writer.address, Ordering::Relaxed);
        header.writer.0.value.store(writer.value, Ordering::Relaxed);
        // Until somebody reads, whoever writes has to wake.
        header.asleep.0.store(1, Ordering::Relaxed);
        header.magic.0.store(MAGIC, Ordering::Release);
        let producer = Self {
            mapping,
            tail: 0,
            head: 0,
            clear: LINE as u64,
        };
        Ok((producer, fd))
    }

    /// Bytes that are free, as far as was looked.
    #[inline]
    fn free(&self) -> usize {
        DATA - (self.tail - self.head) as usize
    }

    /// Whether a record of `length` bytes fits.
    #[inline]
    pub(crate) fn fits(&mut self, length: usize) -> bool {
        // The word behind the record is written, too.
        let needed = length.next_multiple_of(LINE) + LINE;
        if self.free() < needed {
            self.look();
        }
        self.free() >= needed
    }

    /// Looks where the reader is.
    fn look(&mut self) {
        let head = self.mapping.header().head.0.load(Ordering::Acquire);
        // A reader that is ahead of the writer, or went back, is not believed.
        if head <= self.tail && head >= self.head {
            self.head = head;
        }
    }

    /// The place of the next record.
    pub(crate) fn place(&self) -> u64 {
        self.tail
    }

    /// Where the bytes of the next record go, of `length` bytes with its word, which fits.
    ///
    /// They are written with [`Slot`]'s methods and shown by [`Producer::publish`].
    #[inline]
    pub(crate) fn slot(&mut self, length: usize) -> Slot<'_> {
        assert!(self.free() >= length.next_multiple_of(LINE) + LINE && length >= WORD);
        // SAFETY: the record fits into the free part, which is contiguous thanks to the second mapping.
        let next = unsafe { self.mapping.at(self.tail).add(WORD) };
        Slot {
            next,
            left: length - WORD,
            _ring: self,
        }
    }

    /// Shows the record whose bytes were written: `length` bytes with its word, and what `kind` says about it.
    #[inline]
    pub(crate) fn publish(&mut self, length: usize, kind: u32) {
        let next = self.tail + length.next_multiple_of(LINE) as u64;
        if next >= self.clear {
            self.mapping.word(next).store(0, Ordering::Relaxed);
        }
        let word = u64::from(kind) << 32 | length as u64;
        self.mapping.word(self.tail).store(word, Ordering::Release);
        self.tail = next;
        self.clear = next + LINE as u64;
        // The word that the next short record needs: its line is slow to come, and nobody waits for it now.
        if self.free() >= 2 * LINE {
            self.mapping.word(self.clear).store(0, Ordering::Relaxed);
            self.clear += LINE as u64;
        }
    }

    /// Whether the reader has to be woken, after something was published. True once for each time that it sleeps.
    #[inline]
    pub(crate) fn must_wake(&self) -> bool {
        let header = self.mapping.header();
        // What was published is seen before the reader is asked whether it sleeps; it does the opposite.
        if header.barrier.0.load(Ordering::Relaxed) == 1 && barrier::is_registered() {
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
        let asleep = &header.asleep.0;
        asleep.load(Ordering::Relaxed) != 0 && asleep.swap(0, Ordering::SeqCst) != 0
    }

    /// How far the reader has come.
    pub(crate) fn read_until(&mut self) -> u64 {
        self.look();
        self.head
    }

    /// No memory may be read any more for records that were published.
    pub(crate) fn revoke(&self) {
        self.mapping
            .header()
            .revoked
            .0
            .store(self.tail, Ordering::SeqCst);
    }

    /// Whether the reader can read this process's memory; `None` before it has tried.
    #[inline]
    pub(crate) fn is_readable(&self) -> Option<bool> {
        match self.mapping.header().readable.0.load(Ordering::Acquire) {
            0 => None,
            found => Some(found == 1),
        }
    }
}

/// A record that is being written.
pub(crate) struct Slot<'a> {
    next: *mut u8,
    left: usize,
    _ring: &'a mut Producer,
}

impl Slot<'_> {
    /// Appends bytes.
    ///
    /// # Panics
    /// If they are more than the record has room for.
    #[inline]
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        // SAFETY: the target was checked to have room, and no reference to it exists.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.take(bytes.len()), bytes.len()) };
    }

    /// Where the next `length` bytes go, for somebody who copies them there at once.
    #[inline]
    pub(crate) fn take(&mut self, length: usize) -> *mut u8 {
        assert!(length <= self.left, "the record was made too short");
        let target = self.next;
        // SAFETY: at most one past the record.
        self.next = unsafe { target.add(length) };
        self.left -= length;
        target
    }
}

/// The reading end.
#[derive(Debug)]
pub(crate) struct Consumer {
    mapping: Mapping,
    head: u64,
}

/// A record that waits to be read: where its bytes are, without the word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) kind: u32,
    pub(crate) place: u64,
    pub(crate) bytes: *const u8,
    pub(crate) length: usize,
    pub(super) total: usize,
}

/// The other process does not keep to the ring's rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Corrupt;

impl Consumer {
    /// Attaches to the ring behind a descriptor.
    ///
    /// # Errors
    /// If it is none, or its memory could be cut away.
    pub(crate) fn attach(fd: &OwnedFd) -> io::Result<Self> {
        let refuse = |why| Err(io::Error::new(io::ErrorKind::InvalidData, why));
        let seals = fcntl_get_seals(fd.as_fd())?;
        if !seals.contains(SealFlags::SHRINK) {
            return refuse("the memory is not sealed");
        }
        if fstat(fd)?.st_size != (HEADER + DATA) as i64 {
            return refuse("the memory has another size");
        }
        let mapping = Mapping::new(fd)?;
        if mapping.header().magic.0.load(Ordering::Acquire) != MAGIC {
            return refuse("the memory is no ring");
        }
        let barrier = u32::from(barrier::is_registered());
        mapping.header().barrier.0.store(barrier, Ordering::Relaxed);
        Ok(Self { mapping, head: 0 })
    }

    /// What the writer says about itself.
    pub(crate) fn writer(&self) -> WriterIdentity {
        let writer = &self.mapping.header().writer.0;
        WriterIdentity {
            process: writer.process.load(Ordering::Relaxed),
            address: writer.address.load(Ordering::Relaxed),
            value: writer.value.load(Ordering::Relaxed),
        }
    }

    /// Says whether the writer's memory can be read.
    pub(crate) fn set_readable(&self, readable: bool) {
        let value = if readable { 1 } else { 2 };
        self.mapping
            .header()
            .readable
            .0
            .store(value, Ordering::Release);
    }

    /// The next record, if there is one.
    ///
    /// # Errors
    /// If what is there cannot be one.
    #[inline]
    pub(crate) fn peek(&self) -> Result<Option<Record>, Corrupt> {
        let word = self.mapping.word(self.head).load(Ordering::Acquire);
        if word == 0 {
            return Ok(None);
        }
        let total = word as u32 as usize;
        if !(WORD..=LONGEST).contains(&total) {
            return Err(Corrupt);
        }
        Ok(Some(Record {
            kind: (word >> 32) as u32,
            place: self.head,
            // SAFETY: a record is at most a quarter of the data, which is mapped twice.
            bytes: unsafe { self.mapping.at(self.head).add(WORD) },
            length: total - WORD,
            total,
        }))
    }

    /// Is done with a record, which was the next.
    #[inline]
    pub(crate) fn pass(&mut self, record: &Record) {
        self.head += record.total.next_multiple_of(LINE) as u64;
    }

    /// Tells the writer how far the reader is.
    #[inline]
    pub(crate) fn release(&self) {
        self.mapping
            .header()
            .head
            .0
            .store(self.head, Ordering::Release);
    }

    /// Asks to be woken by the next record. What was published before is seen by a look after [`barrier::everywhere`].
    pub(crate) fn fall_asleep(&self) {
        self.mapping.header().asleep.0.store(1, Ordering::SeqCst);
    }

    /// Looks by itself from now on.
    pub(crate) fn stay_awake(&self) {
        self.mapping.header().asleep.0.store(0, Ordering::Relaxed);
    }

    /// Whether the memory that a record stands for may no longer be read.
    #[inline]
    pub(crate) fn is_revoked(&self, place: u64) -> bool {
        self.mapping.header().revoked.0.load(Ordering::SeqCst) > place
    }
}

impl Record {
    /// Copies the first bytes of the record out of the ring: what is looked at more than once must not change.
    #[inline]
    pub(crate) fn copy_to(&self, from: usize, bytes: &mut [u8]) -> bool {
        if from > self.length || bytes.len() > self.length - from {
            return false;
        }
        // SAFETY: within the record. The other process may write meanwhile: then the bytes are those of either time.
        unsafe {
            ptr::copy_nonoverlapping(self.bytes.add(from), bytes.as_mut_ptr(), bytes.len());
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITER: WriterIdentity = WriterIdentity {
        process: 1,
        address: 2,
        value: 3,
    };

    fn ring() -> (Producer, Consumer) {
        let (producer, fd) = Producer::create(WRITER).unwrap();
        let consumer = Consumer::attach(&fd).unwrap();
        assert_eq!(consumer.writer(), WRITER);
        (producer, consumer)
    }

    fn push(producer: &mut Producer, kind: u32, bytes: &[u8]) -> bool {
        let length = WORD + bytes.len();
        if !producer.fits(length) {
            return false;
        }
        producer.slot(length).write(bytes);
        producer.publish(length, kind);
        true
    }

    fn pop(consumer: &mut Consumer) -> Option<(u32, Vec<u8>)> {
        let record = consumer.peek().unwrap()?;
        let mut bytes = vec![0; record.length];
        assert!(record.copy_to(0, &mut bytes));
        consumer.pass(&record);
        Some((record.kind, bytes))
    }

    #[test]
    fn records_come_out_as_they_went_in_around_and_around() {
        let (mut producer, mut consumer) = ring();
        let length = |turn: u32| (turn as usize * 7919) % (LONGEST - WORD);
        let mut read = 0;
        for turn in 0..2000 {
            let bytes = vec![turn as u8; length(turn)];
            while !push(&mut producer, turn, &bytes) {
                assert_eq!(
                    pop(&mut consumer),
                    Some((read, vec![read as u8; length(read)]))
                );
                consumer.release();
                read += 1;
            }
        }
        while let Some(found) = pop(&mut consumer) {
            assert_eq!(found, (read, vec![read as u8; length(read)]));
            read += 1;
        }
        assert_eq!(read, 2000);
        consumer.release();
        assert_eq!(producer.read_until(), producer.place());
    }

    #[test]
    fn a_full_ring_takes_nothing() {
        let (mut producer, mut consumer) = ring();
        let mut count = 0;
        while push(&mut producer, 0, &[1; 56]) {
            count += 1;
        }
        assert_eq!(count, DATA / LINE - 1);
        assert!(pop(&mut consumer).is_some());
        assert!(!push(&mut producer, 0, &[1; 56]), "not released yet");
        consumer.release();
        assert!(push(&mut producer, 0, &[1; 56]));
    }

    #[test]
    fn sleepers_are_woken_once() {
        let (mut producer, consumer) = ring();
        assert!(producer.must_wake(), "nobody reads yet");
        push(&mut producer, 0, &[]);
        assert!(!producer.must_wake());
        consumer.fall_asleep();
        assert!(producer.must_wake());
        assert!(!producer.must_wake());
        consumer.fall_asleep();
        consumer.stay_awake();
        assert!(!producer.must_wake());
    }

    #[test]
    fn what_a_wild_writer_does_is_seen() {
        let (mut producer, mut consumer) = ring();
        for word in [1, WORD as u64 - 1, LONGEST as u64 + 1, u64::MAX] {
            producer.mapping.word(0).store(word, Ordering::Relaxed);
            assert_eq!(consumer.peek().map(|_| ()), Err(Corrupt), "{word:#x}");
        }
        // The last record at the end of the data, as long as can be.
        producer.mapping.word(0).store(0, Ordering::Relaxed);
        consumer.head = (DATA - LINE) as u64;
        producer
            .mapping
            .word(consumer.head)
            .store(LONGEST as u64, Ordering::Relaxed);
        assert_eq!(pop(&mut consumer).unwrap().1.len(), LONGEST - WORD);
        // A reader that claims to be ahead.
        producer
            .mapping
            .header()
            .head
            .0
            .store(1 << 40, Ordering::Relaxed);
        assert!(producer.fits(100) && producer.free() <= DATA);
    }

    #[test]
    fn memory_that_could_be_cut_is_refused() {
        let fd = rustix::fs::memfd_create("plain", MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&fd, (HEADER + DATA) as u64).unwrap();
        assert!(Consumer::attach(&fd).is_err());
        fcntl_add_seals(&fd, SealFlags::SHRINK).unwrap();
        assert!(Consumer::attach(&fd).is_err(), "no magic");
        let small = rustix::fs::memfd_create("small", MemfdFlags::ALLOW_SEALING).unwrap();
        fcntl_add_seals(&small, SealFlags::SHRINK).unwrap();
        assert!(Consumer::attach(&small).is_err());
    }

    #[test]
    fn revoked_records_are_known() {
        let (mut producer, mut consumer) = ring();
        push(&mut producer, 0, &[1]);
        producer.revoke();
        push(&mut producer, 0, &[2]);
        let first = consumer.peek().unwrap().unwrap();
        assert!(consumer.is_revoked(first.place));
        consumer.pass(&first);
        let second = consumer.peek().unwrap().unwrap();
        assert!(!consumer.is_revoked(second.place));
    }
}
