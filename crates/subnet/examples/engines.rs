//! How long each engine takes on a generated subnet, and what the check says of its routes.
//!
//! ```sh
//! cargo run --release -p softfabric-subnet --example engines -- fat-tree 24
//! cargo run --release -p softfabric-subnet --example engines -- torus 8 8 8
//! ```

use std::time::Instant;

use softfabric_subnet::check::check;
use softfabric_subnet::generate::{fat_tree, torus};
use softfabric_subnet::routing::{
    Dfsssp, FatTree, MinHop, Nue, RoutingEngine, RoutingView, Torus, UpDown,
};

#[expect(
    clippy::disallowed_methods,
    reason = "it tells how long its steps take"
)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let sizes: Vec<u8> = arguments[1..]
        .iter()
        .filter_map(|text| text.parse().ok())
        .collect();
    let only: Vec<&String> = arguments[1..]
        .iter()
        .filter(|text| text.parse::<u8>().is_err())
        .collect();
    let mut subnet = match arguments[0].as_str() {
        "torus" => torus(&sizes, 2)?,
        _ => fat_tree(sizes[0], 3)?,
    };
    subnet.assign_lids(0)?;
    let begin = Instant::now();
    let view = RoutingView::new(&subnet);
    println!(
        "{} switches, {} identifiers, view {:.3} s",
        view.switches(),
        view.targets().len(),
        begin.elapsed().as_secs_f64()
    );
    let engines: [&dyn RoutingEngine; 6] = [
        &MinHop,
        &UpDown::default(),
        &FatTree::default(),
        &Dfsssp { lanes: 15 },
        &Torus,
        &Nue { lanes: 4 },
    ];
    for engine in engines {
        if !only.is_empty() && !only.iter().any(|name| **name == engine.name()) {
            continue;
        }
        let begin = Instant::now();
        let routes = match engine.route(&view) {
            Ok(routes) => routes,
            Err(error) => {
                println!(
                    "{:10} {:8.3} s  {error}",
                    engine.name(),
                    begin.elapsed().as_secs_f64()
                );
                continue;
            }
        };
        let routed = begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        let report = check(&view, &routes);
        println!(
            "{:10} {routed:8.3} s  {} lanes; check {:.3} s: {} broken, hops {:?}, {}",
            engine.name(),
            routes.lanes_used,
            begin.elapsed().as_secs_f64(),
            report.broken_count,
            report.hops,
            report
                .credit_loop
                .map_or("no loop".to_owned(), |found| format!(
                    "loop of {}",
                    found.channels.len()
                )),
        );
    }
    Ok(())
}
