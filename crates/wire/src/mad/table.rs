//! Attributes as tables of fields, as the standard prints them: where a field starts, how many bits it has, what it is.
//!
//! ```text
//! [byte : bit ; bits] name : type        bit 0 of a byte is its highest, as in the standard's drawings
//! ```
//!
//! From one table come the structure, its decoder, its encoder, and [`Attribute::FIELDS`], by which tests hold each
//! offset to other people's headers and by which subnet administration finds the component that a mask speaks of.
//! Encoding writes reserved bits as zero, and of a value only the bits that fit; decoding ignores reserved bits and never
//! fails on a value: codes that the standard reserves stay what they are.

use softfabric_units::{Gid, Guid, Lid, PartitionKey, Qpn};

use crate::bytes::split;
use crate::error::DecodeError;

/// One field of an attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldLayout {
    /// Its name in the structure.
    pub name: &'static str,
    /// Its first bit, counted from the attribute's start.
    pub bit: usize,
    /// How many bits it has.
    pub width: usize,
    /// How many components of a component mask it is: more than one for arrays.
    pub components: usize,
    /// The number of its (first) component, where it does not follow from the table.
    pub component: Option<usize>,
    /// The fields of an attribute that it holds; each is a component.
    pub inner: &'static [FieldLayout],
}

/// What a management datagram carries: a structure of fixed layout.
pub trait Attribute: Sized {
    /// Its number in its class.
    const ID: u16;
    /// Its name, for errors.
    const NAME: &'static str;
    /// Its length in bytes.
    const LENGTH: usize;
    /// Its fields in the order of the wire.
    const FIELDS: &'static [FieldLayout];

    /// Reads the attribute at the start of `bytes`.
    ///
    /// # Errors
    /// If the bytes end too early.
    fn decode(bytes: &[u8]) -> Result<Self, DecodeError>;

    /// Writes the attribute to the start of `bytes` and returns its length.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`Attribute::LENGTH`].
    fn encode(&self, bytes: &mut [u8]) -> usize;

    /// The attribute's bytes, then zeros.
    ///
    /// # Panics
    /// If `N` is less than [`Attribute::LENGTH`].
    fn to_bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.encode(&mut bytes);
        bytes
    }
}

/// A value that a field holds.
pub(crate) trait Bits: Sized {
    fn get(bytes: &[u8], bit: usize, width: usize) -> Self;
    fn put(&self, bytes: &mut [u8], bit: usize, width: usize);
}

/// The `width` bits, at most 64 in at most 8 bytes, that start at bit `bit`.
#[inline(always)]
fn read(bytes: &[u8], bit: usize, width: usize) -> u64 {
    let (first, end) = (bit / 8, (bit + width).div_ceil(8));
    let value = bytes[first..end]
        .iter()
        .fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    (value >> (end * 8 - bit - width)) & mask(width)
}

#[inline(always)]
fn write(bytes: &mut [u8], bit: usize, width: usize, value: u64) {
    let (first, end) = (bit / 8, (bit + width).div_ceil(8));
    let shift = end * 8 - bit - width;
    let (mut mask, mut value) = (mask(width) << shift, (value & mask(width)) << shift);
    for byte in bytes[first..end].iter_mut().rev() {
        *byte = *byte & !(mask as u8) | value as u8;
        mask >>= 8;
        value >>= 8;
    }
}

const fn mask(width: usize) -> u64 {
    u64::MAX >> (64 - width)
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl Bits for $integer {
            #[inline(always)]
            fn get(bytes: &[u8], bit: usize, width: usize) -> Self {
                read(bytes, bit, width) as Self
            }
            #[inline(always)]
            fn put(&self, bytes: &mut [u8], bit: usize, width: usize) {
                write(bytes, bit, width, u64::from(*self));
            }
        }
    )*};
}

integers!(u8, u16, u32, u64);

impl Bits for bool {
    #[inline(always)]
    fn get(bytes: &[u8], bit: usize, width: usize) -> Self {
        read(bytes, bit, width) != 0
    }
    #[inline(always)]
    fn put(&self, bytes: &mut [u8], bit: usize, width: usize) {
        write(bytes, bit, width, u64::from(*self));
    }
}

/// Arrays: elements of equal width, one after another.
impl<T: Bits, const N: usize> Bits for [T; N] {
    #[inline(always)]
    fn get(bytes: &[u8], bit: usize, width: usize) -> Self {
        let each = width / N;
        std::array::from_fn(|index| T::get(bytes, bit + index * each, each))
    }
    #[inline(always)]
    fn put(&self, bytes: &mut [u8], bit: usize, width: usize) {
        let each = width / N;
        for (index, element) in self.iter().enumerate() {
            element.put(bytes, bit + index * each, each);
        }
    }
}

impl Bits for Gid {
    fn get(bytes: &[u8], bit: usize, width: usize) -> Self {
        Self(Bits::get(bytes, bit, width))
    }
    fn put(&self, bytes: &mut [u8], bit: usize, width: usize) {
        self.0.put(bytes, bit, width);
    }
}

impl Bits for Qpn {
    fn get(bytes: &[u8], bit: usize, width: usize) -> Self {
        Self::new(Bits::get(bytes, bit, width))
    }
    fn put(&self, bytes: &mut [u8], bit: usize, width: usize) {
        self.as_u32().put(bytes, bit, width);
    }
}

/// Fields that are a number in a wrapper.
macro_rules! wrapped {
    ($($name:ty),* $(,)?) => {$(
        impl $crate::mad::table::Bits for $name {
            #[inline(always)]
            fn get(bytes: &[u8], bit: usize, width: usize) -> Self {
                Self($crate::mad::table::Bits::get(bytes, bit, width))
            }
            #[inline(always)]
            fn put(&self, bytes: &mut [u8], bit: usize, width: usize) {
                $crate::mad::table::Bits::put(&self.0, bytes, bit, width);
            }
        }
    )*};
}
pub(crate) use wrapped;

wrapped!(Lid, Guid, PartitionKey, super::cm::ServiceId);

impl Bits for crate::infiniband::ServiceLevel {
    fn get(bytes: &[u8], bit: usize, width: usize) -> Self {
        Self::checked(read(bytes, bit, width) as u8 & 0xf).unwrap_or_default()
    }
    fn put(&self, bytes: &mut [u8], bit: usize, width: usize) {
        self.as_u8().put(bytes, bit, width);
    }
}

impl Bits for crate::infiniband::VirtualLane {
    fn get(bytes: &[u8], bit: usize, width: usize) -> Self {
        Self::checked(read(bytes, bit, width) as u8 & 0xf).unwrap_or_default()
    }
    fn put(&self, bytes: &mut [u8], bit: usize, width: usize) {
        self.as_u8().put(bytes, bit, width);
    }
}

/// Declares attributes by their tables. A row may go on with `x n` (it is n components), `# n` (its component's
/// number) and `in T` (it holds the attribute `T`, whose fields are components of their own).
macro_rules! attributes {
    ($(
        $(#[$meta:meta])*
        $name:ident = $id:literal, $length:literal bytes {
            $(
                $(#[$field_meta:meta])*
                [$byte:literal : $bit:literal ; $width:literal $(x $components:literal)? $(# $component:literal)? $(in $inner:ty)?]
                $field:ident : $type:ty,
            )*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $type, )*
        }

        impl $crate::mad::Attribute for $name {
            const ID: u16 = $id;
            const NAME: &'static str = stringify!($name);
            const LENGTH: usize = $length;
            const FIELDS: &'static [$crate::mad::FieldLayout] = &[$(
                $crate::mad::FieldLayout {
                    name: stringify!($field),
                    bit: $byte * 8 + $bit,
                    width: $width,
                    components: { let _count = 1; $( let _count = $components; )? _count },
                    inner: { let _inner: &'static [$crate::mad::FieldLayout] = &[]; $( let _inner = <$inner as $crate::mad::Attribute>::FIELDS; )? _inner },
                    component: { let _number: Option<usize> = None; $( let _number = Some($component); )? _number },
                },
            )*];

            fn decode(bytes: &[u8]) -> Result<Self, $crate::DecodeError> {
                let bytes = $crate::mad::table::whole(bytes, $length, stringify!($name))?;
                Ok(Self {
                    $( $field: $crate::mad::table::Bits::get(bytes, $byte * 8 + $bit, $width), )*
                })
            }

            fn encode(&self, bytes: &mut [u8]) -> usize {
                let bytes = &mut bytes[..$length];
                bytes.fill(0);
                $( $crate::mad::table::Bits::put(&self.$field, bytes, $byte * 8 + $bit, $width); )*
                $length
            }
        }

        impl Default for $name {
            /// All bits zero.
            fn default() -> Self {
                let zeros = [0; $length];
                Self {
                    $( $field: $crate::mad::table::Bits::get(&zeros, $byte * 8 + $bit, $width), )*
                }
            }
        }

        /// Attributes may hold attributes.
        impl $crate::mad::table::Bits for $name {
            fn get(bytes: &[u8], bit: usize, _width: usize) -> Self {
                Self {
                    $( $field: $crate::mad::table::Bits::get(bytes, bit + $byte * 8 + $bit, $width), )*
                }
            }
            fn put(&self, bytes: &mut [u8], bit: usize, _width: usize) {
                $( $crate::mad::table::Bits::put(&self.$field, bytes, bit + $byte * 8 + $bit, $width); )*
            }
        }
    )*};
}
pub(crate) use attributes;

/// Declares numbers that have names, and stay what they are where they have none.
macro_rules! codes {
    ($(
        $(#[$meta:meta])*
        $name:ident($integer:ty) {
            $( $(#[$code_meta:meta])* $code:ident = $value:expr, )*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
        pub struct $name(pub $integer);

        impl $name {
            $( $(#[$code_meta])* pub const $code: Self = Self($value); )*
        }

        $crate::mad::table::wrapped!($name);
    )*};
}
pub(crate) use codes;

/// Adds set operations to codes that are sets of bits.
macro_rules! sets {
    ($($name:ty),*) => {$(
        impl $name {
            /// Nothing.
            pub const NONE: Self = Self(0);

            /// Whether all of `other` is in it.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// What is in either.
            #[must_use]
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }
    )*};
}
pub(crate) use sets;

/// The data of a datagram that says it carries `attribute` as an attribute `A`; `None` where that is another one.
pub(crate) fn data_as<A: Attribute>(attribute: u16, data: &[u8]) -> Option<A> {
    (attribute == A::ID).then(|| A::decode(data).ok()).flatten()
}

/// The first `length` bytes.
pub(crate) fn whole<'a>(
    bytes: &'a [u8],
    length: usize,
    what: &'static str,
) -> Result<&'a [u8], DecodeError> {
    split(bytes, 0, length, what).map(|(whole, _)| whole)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_come_back_and_neighbours_stay(
            before in any::<[u8; 10]>(), value in any::<u64>(), bit in 0_usize..24, width in 1_usize..=56,
        ) {
            prop_assume!(bit % 8 + width <= 64);
            let mut bytes = before;
            write(&mut bytes, bit, width, value);
            prop_assert_eq!(read(&bytes, bit, width), value & mask(width));
            write(&mut bytes, bit, width, read(&before, bit, width));
            prop_assert_eq!(bytes, before);
        }
    }

    #[test]
    fn bits_by_hand() {
        let bytes = [0x12, 0x34, 0x56, 0x78];
        assert_eq!(read(&bytes, 4, 12), 0x234);
        assert_eq!(read(&bytes, 0, 4), 1);
        assert_eq!(<[u8; 4]>::get(&bytes, 8, 16), [3, 4, 5, 6]);
        assert_eq!(<[u16; 2]>::get(&bytes, 0, 32), [0x1234, 0x5678]);
    }
}
