//! Objects under numbers that are not soon given to others.
//!
//! ```text
//!  31       24 23                 0
//! ┌───────────┬────────────────────┐
//! │generation │       index        │   the generation moves on when the index becomes free
//! └───────────┴────────────────────┘
//! ```
//!
//! A driver learns that an object is gone after the fact, and may still hold its number: an event that another thread is
//! about to deliver, a list that the object is about to be taken off. Such a number finds nothing here, and is no other
//! object's for at least 256 × 64 of them that come and go.

use std::collections::VecDeque;

const INDEX_BITS: u32 = 24;
const INDEX: u32 = (1 << INDEX_BITS) - 1;
/// So many free places wait before one is used again.
const RESTING: usize = 64;

/// Objects by number.
#[derive(Debug)]
pub(crate) struct Table<T> {
    places: Vec<Place<T>>,
    free: VecDeque<u32>,
}

#[derive(Debug)]
struct Place<T> {
    number: u32,
    object: Option<T>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            free: VecDeque::new(),
        }
    }
}

impl<T> Table<T> {
    /// Gives an object its number.
    ///
    /// # Panics
    /// With 16 million objects. `u32::MAX` is nobody's number.
    pub(crate) fn insert(&mut self, object: T) -> u32 {
        if self.free.len() > RESTING
            && let Some(index) = self.free.pop_front()
        {
            let place = &mut self.places[index as usize];
            place.object = Some(object);
            return place.number;
        }
        let number = self.places.len() as u32;
        assert!(number < INDEX, "16 million objects of one kind");
        self.places.push(Place {
            number,
            object: Some(object),
        });
        number
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        let place = self.places.get((number & INDEX) as usize)?;
        place.object.as_ref().filter(|_| place.number == number)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let place = self.places.get_mut((number & INDEX) as usize)?;
        place.object.as_mut().filter(|_| place.number == number)
    }

    /// The place of an object, which others get after it.
    pub(crate) fn index(number: u32) -> u32 {
        number & INDEX
    }

    /// The object at a place, and its number.
    #[inline]
    pub(crate) fn at(&self, index: u32) -> Option<(u32, &T)> {
        let place = self.places.get(index as usize)?;
        Some((place.number, place.object.as_ref()?))
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        self.get(number).is_some()
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<T> {
        let index = number & INDEX;
        let place = self.places.get_mut(index as usize)?;
        let object = place.object.take_if(|_| place.number == number)?;
        place.number = number.wrapping_add(1 << INDEX_BITS);
        self.free.push_back(index);
        Some(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_not_soon_used_again() {
        let mut table = Table::default();
        let first = table.insert(0);
        assert_eq!(table.remove(first), Some(0));
        assert_eq!(table.remove(first), None);
        for object in 1..16_000 {
            let number = table.insert(object);
            assert_ne!(number, first);
            assert_eq!(table.get(first), None);
            assert_eq!(table.get_mut(number), Some(&mut { object }));
            assert_eq!(table.remove(number), Some(object));
        }
        assert!(table.places.len() < 100, "places are used again");
    }

    #[test]
    fn nothing_is_found_where_nothing_is() {
        let mut table = Table::default();
        let number = table.insert('a');
        assert!(table.contains(number));
        for other in [number + 1, number + (1 << 24), u32::MAX] {
            assert!(!table.contains(other));
            assert_eq!(table.remove(other), None);
        }
        assert_eq!(table.get(number), Some(&'a'));
    }
}
