//! Random work on two devices over a bad wire, against a model that knows what may come of it.
//!
//! ```text
//! seed ─► scene (wire, recovery, kinds of links) ─► world (two devices, many queue pairs, a clock)
//!                                                      │ requests, receives, faults, deaths, drains
//!                                                      ▼
//!         judge: each request completed once, in order, with the status and the data that the model allows
//! ```
//!
//! Where nothing goes wrong that ends a connection, the model allows exactly one outcome. A quick run is part of the
//! usual tests; a million requests are
//! `cargo test --release -p softfabric-transport --test model -- --ignored`. A run that fails prints its seed, and
//! `SOFTFABRIC_MODEL_SEED=n` runs that one alone; `SOFTFABRIC_MODEL_FIRST=n` starts the long run at another seed.

mod judge;
mod memory;
mod post;
mod received;
mod scene;
mod world;

use scene::Scene;
use world::World;

/// Runs scenes from `seed` on until `requests` requests are judged.
fn run(mut seed: u64, requests: usize) {
    if let Some(only) = number("SOFTFABRIC_MODEL_SEED") {
        one(only);
        return;
    }
    let mut judged = 0;
    while judged < requests {
        judged += one(seed);
        seed += 1;
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs the scene of one seed; returns how many requests it had.
fn one(seed: u64) -> usize {
    let told = Told(seed);
    let scene = Scene::new(seed);
    let mut world = World::new(scene);
    let mut judged = 0;
    for _phase in 0..scene.phases {
        if !world.connect() {
            break;
        }
        world.work();
        world.settle();
        judged += judge::judge(&mut world);
        world.reset();
    }
    std::mem::forget(told);
    judged
}

/// Tells the seed when the test fails.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        let seed = self.0;
        eprintln!(
            "the model disagrees: SOFTFABRIC_MODEL_SEED={seed} cargo test -p softfabric-transport --test model quick"
        );
    }
}

#[test]
fn quick() {
    run(1, 6_000);
}

#[test]
#[ignore = "takes a while"]
fn a_million_requests() {
    let first = number("SOFTFABRIC_MODEL_FIRST").unwrap_or(1_000_000);
    run(first, 1_000_000);
}
