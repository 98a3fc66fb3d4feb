//! The engine as a whole.
