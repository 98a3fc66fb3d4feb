//! Tests of comparisons.
