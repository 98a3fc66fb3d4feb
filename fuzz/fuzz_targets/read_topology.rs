//! Any text is an error, or a subnet that can be written, that has as many cables if that is read again, gets identifiers,
//! and is routed or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use softfabric_subnet::check::check;
use softfabric_subnet::format::{read_topology, write_ibnetdiscover, write_net};
use softfabric_subnet::routing::{Dfsssp, FatTree, MinHop, Nue, RoutingEngine, RoutingView, Torus, UpDown};

fuzz_target!(|text: &str| {
    let Ok(mut subnet) = read_topology(text, "fuzz") else {
        return;
    };
    if subnet.nodes().len() > 40 || subnet.assign_lids(0).is_err() {
        return;
    }
    write_ibnetdiscover(&subnet);
    if let Ok(again) = read_topology(&write_net(&subnet), "again") {
        assert_eq!(again.cables().count(), subnet.cables().count());
    }
    let view = RoutingView::new(&subnet);
    let engines: [(&dyn RoutingEngine, bool); 6] = [
        (&MinHop, false),
        (&UpDown::default(), true),
        (&FatTree::default(), true),
        (&Dfsssp { lanes: 15 }, true),
        (&Torus, true),
        (&Nue { lanes: 2 }, true),
    ];
    for (engine, free) in engines {
        if let Ok(routes) = engine.route(&view) {
            let report = check(&view, &routes);
            assert_eq!(report.broken_count, 0, "{}", engine.name());
            assert!(!free || report.credit_loop.is_none(), "{}", engine.name());
        }
    }
});
