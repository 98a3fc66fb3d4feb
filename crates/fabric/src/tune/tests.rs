//! Tests of tuning.
