//! How long each engine takes on a generated subnet, what the check says of its routes, and how long the repair takes after
//! the last cable between switches and one in the middle are lost.
//!
//! ```sh
//! cargo run --release -p softfabric-subnet --example engines -- fat-tree 24
//! cargo run --release -p softfabric-subnet --example engines -- torus 8 8 8
//! ```

use std::time::Instant;

use softfabric_subnet::PortRef;
use softfabric_subnet::check::check;
use softfabric_subnet::generate::{fat_tree, torus};
use softfabric_subnet::routing::{
    Before, Dfsssp, FatTree, MinHop, Nue, RoutingEngine, RoutingView, Torus, UpDown,
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
        let trunks: Vec<_> = subnet
            .cables()
            .filter(|(left, right)| {
                let is_switch = |port: &PortRef| subnet.node(port.node).is_switch();
                is_switch(left) && is_switch(right)
            })
            .collect();
        for (lost, _) in [trunks[trunks.len() - 1], trunks[trunks.len() / 2]] {
            let mut less = subnet.clone();
            less.disconnect(lost);
            let less = RoutingView::new(&less);
            let before = Before {
                view: &view,
                routes: &routes,
            };
            let begin = Instant::now();
            let repaired = engine.repair(&less, before);
            println!(
                "{:10} {:8.3} s  repair{}",
                engine.name(),
                begin.elapsed().as_secs_f64(),
                repaired.map_or_else(|error| format!(": {error}"), |_| String::new()),
            );
        }
    }
    Ok(())
}
