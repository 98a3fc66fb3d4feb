//! Another library's table of addresses: where it is, and how to change it.
//!
//! ```text
//! a library's code ── call write ──► its table of addresses ── the C library's write
//!                                             └──────────────► ours, from now on
//! ```
//!
//! The dynamic linker has filled the table and, with full RELRO, made its page read-only. Entries are found by the
//! names in the library's relocations, and changed one word at a time.
#![allow(unsafe_code, reason = "another object's tables are read and changed")]

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use libc::{Elf64_Phdr, Elf64_Rela, Elf64_Sym, dl_phdr_info};

/// What an entry shall hold: a function's name in the C library, and ours.
pub(crate) type Replacement = (&'static CStr, usize);

/// What became of a library's table.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Outcome {
    /// How many entries lead to us now.
    pub(crate) changed: usize,
    /// How many should, and could not be changed.
    pub(crate) refused: usize,
}

/// Relocations that hold a function's address.
#[cfg(target_arch = "x86_64")]
const RELOCATIONS: [u32; 2] = [6, 7];
#[cfg(target_arch = "aarch64")]
const RELOCATIONS: [u32; 2] = [1025, 1026];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const RELOCATIONS: [u32; 0] = [];

const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;

/// One entry of a library's dynamic section.
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

/// Changes the tables of every loaded library whose file name begins with `name`.
pub(crate) fn replace(name: &str, replacements: &[Replacement]) -> Outcome {
    replace_where(&|file: &str| file.starts_with(name), replacements)
}

/// Changes the tables of every loaded object that is `wanted`, by the name of its file; the program itself has none.
pub(crate) fn replace_where(
    wanted: &dyn Fn(&str) -> bool,
    replacements: &[Replacement],
) -> Outcome {
    let mut search = Search {
        wanted,
        replacements,
        outcome: Outcome::default(),
    };
    // SAFETY: the callback gets the search back, which lives across the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.outcome
}

struct Search<'a> {
    wanted: &'a dyn Fn(&str) -> bool,
    replacements: &'a [Replacement],
    outcome: Outcome,
}

/// # Safety
/// Called by the dynamic linker, with the search that [`replace`] gave it.
unsafe extern "C" fn visit(info: *mut dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
    // SAFETY: as promised by the caller; the linker's text ends with a zero.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search<'_>>()) };
    if info.dlpi_name.is_null() {
        return 0;
    }
    // SAFETY: see above.
    let path = unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy();
    let file = path.rsplit('/').next().unwrap_or_default();
    // This library calls the C library itself, whatever its file is called.
    // SAFETY: as promised by the caller.
    if !unsafe { holds(info, visit as *const () as usize) } && (search.wanted)(file) {
        // SAFETY: the linker holds its lock: the library stays loaded during the callback.
        let outcome = unsafe { change(info, search.replacements) };
        search.outcome.changed += outcome.changed;
        search.outcome.refused += outcome.refused;
    }
    0
}

/// Whether an address is in a loaded object.
///
/// # Safety
/// `info` is that of a loaded object.
unsafe fn holds(info: &dl_phdr_info, address: usize) -> bool {
    // SAFETY: as promised by the caller.
    let headers =
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    headers.iter().any(|header| {
        let start = (info.dlpi_addr + header.p_vaddr) as usize;
        header.p_type == libc::PT_LOAD
            && (start..start + header.p_memsz as usize).contains(&address)
    })
}

/// # Safety
/// `info` is that of a loaded library.
unsafe fn change(info: &dl_phdr_info, replacements: &[Replacement]) -> Outcome {
    let mut outcome = Outcome::default();
    // SAFETY: as promised; the library's own headers are well-formed, or the linker had not loaded it.
    unsafe {
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
        let Some(dynamic) = headers
            .iter()
            .find(|header| header.p_type == libc::PT_DYNAMIC)
        else {
            return outcome;
        };
        let tables = Tables::read(info.dlpi_addr, dynamic);
        let Some(symbols) = tables.symbols() else {
            return outcome;
        };
        for relocation in tables.relocations() {
            let kind = relocation.r_info as u32;
            if !RELOCATIONS.contains(&kind) {
                continue;
            }
            let symbol = &*symbols.add((relocation.r_info >> 32) as usize);
            let name = CStr::from_ptr(
                tables
                    .pointer::<libc::c_char>(tables.strings)
                    .add(symbol.st_name as usize),
            );
            let Some((_, ours)) = replacements.iter().find(|(wanted, _)| *wanted == name) else {
                continue;
            };
            let place = (info.dlpi_addr + relocation.r_offset) as usize;
            if store(headers, info.dlpi_addr, place, *ours) {
                outcome.changed += 1;
            } else {
                outcome.refused += 1;
            }
        }
    }
    outcome
}

/// Where a library's tables are.
#[derive(Default)]
struct Tables {
    base: u64,
    symbols: u64,
    strings: u64,
    jumps: (u64, u64),
    others: (u64, u64),
}

impl Tables {
    /// # Safety
    /// `header` is the dynamic segment of a library that is loaded at `base`.
    unsafe fn read(base: u64, header: &Elf64_Phdr) -> Self {
        let mut tables = Self {
            base,
            ..Self::default()
        };
        let mut entry =
            std::ptr::with_exposed_provenance::<Dynamic>((base + header.p_vaddr) as usize);
        let end = header.p_memsz as usize / size_of::<Dynamic>();
        for _ in 0..end {
            // SAFETY: within the segment.
            let (tag, value) = unsafe { ((*entry).tag, (*entry).value) };
            match tag {
                0 => break,
                DT_SYMTAB => tables.symbols = value,
                DT_STRTAB => tables.strings = value,
                DT_JMPREL => tables.jumps.0 = value,
                DT_PLTRELSZ => tables.jumps.1 = value,
                DT_RELA => tables.others.0 = value,
                DT_RELASZ => tables.others.1 = value,
                _ => {}
            }
            // SAFETY: within the segment, or just after it.
            entry = unsafe { entry.add(1) };
        }
        tables
    }

    /// Some linkers leave addresses in the section as they are in the file.
    fn pointer<T>(&self, address: u64) -> *const T {
        let address = if address < self.base {
            address + self.base
        } else {
            address
        };
        std::ptr::with_exposed_provenance(address as usize)
    }

    fn symbols(&self) -> Option<*const Elf64_Sym> {
        (self.symbols != 0 && self.strings != 0).then(|| self.pointer(self.symbols))
    }

    /// # Safety
    /// The library is loaded.
    unsafe fn relocations(&self) -> impl Iterator<Item = &Elf64_Rela> {
        [self.jumps, self.others]
            .into_iter()
            .flat_map(|(start, bytes)| {
                let count = if start == 0 {
                    0
                } else {
                    bytes as usize / size_of::<Elf64_Rela>()
                };
                let first = if count == 0 {
                    std::ptr::NonNull::dangling().as_ptr()
                } else {
                    self.pointer::<Elf64_Rela>(start).cast_mut()
                };
                // SAFETY: as promised; or no entries at all.
                unsafe { std::slice::from_raw_parts(first, count) }
            })
    }
}

/// Makes the word at `place` hold `value`. Says whether it does.
///
/// # Safety
/// `place` is an entry of the table of the library with `headers` at `base`.
unsafe fn store(headers: &[Elf64_Phdr], base: u64, place: usize, value: usize) -> bool {
    // SAFETY: as promised; entries are aligned words.
    let word = unsafe { AtomicUsize::from_ptr(std::ptr::with_exposed_provenance_mut(place)) };
    if word.load(Ordering::Relaxed) == value {
        return true;
    }
    // SAFETY: no pointers are passed.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let sealed = headers.iter().any(|header| {
        let start = (base + header.p_vaddr) as usize;
        let end = start + header.p_memsz as usize;
        // The linker protects whole pages: an entry after the last one stays writable.
        header.p_type == libc::PT_GNU_RELRO
            && (start & !(page - 1)..end & !(page - 1)).contains(&place)
    });
    let start = std::ptr::with_exposed_provenance_mut::<c_void>(place & !(page - 1));
    // SAFETY: it is the page of the entry, which stays readable throughout.
    unsafe {
        if sealed && libc::mprotect(start, page, libc::PROT_READ | libc::PROT_WRITE) != 0 {
            return false;
        }
        word.store(value, Ordering::Release);
        if sealed {
            libc::mprotect(start, page, libc::PROT_READ);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn ours(_: *const libc::c_char) -> usize {
        4711
    }

    #[test]
    fn libraries_of_other_names_stay_as_they_are() {
        let ours = ours as extern "C" fn(_) -> _ as usize;
        let outcome = replace("libnothing.so", &[(c"strlen", ours)]);
        assert_eq!(outcome, Outcome::default());
        let outcome = replace("libc.so", &[(c"no such function", ours)]);
        assert_eq!(outcome, Outcome::default());
    }
}
