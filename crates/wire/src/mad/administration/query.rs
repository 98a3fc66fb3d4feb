//! Component masks: which fields of a record a query fixes (IBTA vol. 1, 15.4.4).
//!
//! Components are numbered in the order of the wire. What is reserved between two fields is a component, too, and so is
//! each element of an array.

use crate::mad::{Attribute, ComponentMask, FieldLayout};

/// A component: number, first bit, bits.
type Component = (usize, usize, usize);

/// The components of `A`.
fn components<A: Attribute>() -> Vec<Component> {
    let mut walk = Walk::default();
    let mut all = Vec::new();
    for field in A::FIELDS {
        if field.inner.is_empty() {
            walk.step(field, 0);
            walk.push(field, 0, &mut all);
        }
        for inner in field.inner {
            walk.step(inner, field.bit);
            walk.push(inner, field.bit, &mut all);
        }
    }
    all
}

/// Numbers components along the fields of a record.
#[derive(Default)]
struct Walk {
    first: usize,
    next: usize,
    end: usize,
}

impl Walk {
    const fn step(&mut self, field: &FieldLayout, base: usize) {
        self.first = match field.component {
            Some(number) => number,
            None if base + field.bit > self.end => self.next + 1,
            None => self.next,
        };
        self.next = self.first + field.components;
        self.end = base + field.bit + field.width;
    }

    fn push(&self, field: &FieldLayout, base: usize, all: &mut Vec<Component>) {
        let each = field.width / field.components;
        let one = |index| (self.first + index, base + field.bit + index * each, each);
        all.extend((0..field.components).map(one));
    }

    const fn mask(&self, field: &FieldLayout) -> ComponentMask {
        ComponentMask((u64::MAX >> (64 - field.components)) << self.first)
    }
}

/// The mask of the field `name` of `A`, or of the field `inner` of its field `name`; for arrays, of all elements. Meant
/// for constants:
///
/// ```
/// use softfabric_wire::mad::administration::{NodeRecord, PathRecord, component};
/// use softfabric_wire::mad::ComponentMask;
///
/// const SOURCE: ComponentMask = component::<PathRecord>("source_gid", "");
/// assert_eq!(SOURCE, ComponentMask(1 << 3));
/// const TYPE: ComponentMask = component::<NodeRecord>("info", "node_type");
/// assert_eq!(TYPE, ComponentMask(1 << 4));
/// ```
///
/// # Panics
/// If the record has no such field: at compile time, in a constant.
pub const fn component<A: Attribute>(name: &str, inner: &str) -> ComponentMask {
    let mut walk = Walk {
        first: 0,
        next: 0,
        end: 0,
    };
    let mut index = 0;
    while index < A::FIELDS.len() {
        let field = &A::FIELDS[index];
        let named = equal(field.name.as_bytes(), name.as_bytes());
        if field.inner.is_empty() {
            walk.step(field, 0);
            if named && inner.is_empty() {
                return walk.mask(field);
            }
        }
        let mut inside = 0;
        while inside < field.inner.len() {
            let held = &field.inner[inside];
            walk.step(held, field.bit);
            if named && equal(held.name.as_bytes(), inner.as_bytes()) {
                return walk.mask(held);
            }
            inside += 1;
        }
        index += 1;
    }
    panic!("the record has no field of this name")
}

const fn equal(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut index = 0;
    while index < left.len() {
        if left[index] != right[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// Whether `record` equals `wanted` in every field of `mask`. Fields that are read otherwise, as MTU and rate with their
/// selectors, are for the caller: take them out of the mask first.
pub fn matches<A: Attribute>(record: &A, wanted: &A, mask: ComponentMask) -> bool {
    if mask == ComponentMask::NONE {
        return true;
    }
    let mut left = vec![0; A::LENGTH];
    let mut right = left.clone();
    record.encode(&mut left);
    wanted.encode(&mut right);
    let bit = |bytes: &[u8], bit: usize| bytes[bit / 8] >> (7 - bit % 8) & 1;
    components::<A>()
        .iter()
        .filter(|(number, _, _)| *number < 64 && mask.0 >> number & 1 != 0)
        .all(|(_, first, width)| {
            (*first..first + width).all(|at| bit(&left, at) == bit(&right, at))
        })
}

#[cfg(test)]
mod tests {
    use softfabric_units::Lid;

    use super::*;
    use crate::mad::administration::{LinkRecord, ServiceRecord};

    #[test]
    fn only_masked_fields_count() {
        let record = LinkRecord {
            from_lid: Lid(1),
            from_port: 2,
            to_port: 3,
            to_lid: Lid(4),
        };
        let wanted = LinkRecord {
            from_port: 9,
            ..record
        };
        let lids =
            component::<LinkRecord>("from_lid", "").with(component::<LinkRecord>("to_lid", ""));
        assert!(matches(&record, &wanted, lids));
        assert!(matches(&record, &wanted, ComponentMask::NONE));
        let port = component::<LinkRecord>("from_port", "");
        assert!(!matches(&record, &wanted, lids.with(port)));
    }

    #[test]
    fn elements_of_arrays_are_components() {
        let record = ServiceRecord::default();
        let mut wanted = record;
        wanted.data8[3] = 1;
        let all = component::<ServiceRecord>("data8", "");
        assert_eq!(all, ComponentMask(0xffff << 7));
        assert!(!matches(&record, &wanted, all));
        assert!(matches(&record, &wanted, ComponentMask(1 << 9)));
        assert!(!matches(&record, &wanted, ComponentMask(1 << 10)));
    }
}
