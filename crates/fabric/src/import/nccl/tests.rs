//! Files in the forms that are about: given to NCCL, dumped by it, and wrong.

use super::*;

fn parsed(text: &str) -> NodeTopology {
    read(Path::new("topo.xml"), text).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    read(Path::new("topo.xml"), text).unwrap_err().to_string()
}

/// The NIC of each accelerator.
fn nics_of(node: &NodeTopology) -> Vec<u32> {
    node.accelerators.iter().map(|it| it.nic).collect()
}

/// A function on PCIe of the fourth generation.
fn pci(bus: &str, class: &str, inside: &str) -> String {
    format!(
        "<pci busid=\"{bus}\" class=\"{class}\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">{inside}</pci>\n"
    )
}

fn gpu(bus: &str, number: u32, direct: u8, links: &str) -> String {
    let gpu =
        format!("<gpu dev=\"{number}\" sm=\"90\" rank=\"{number}\" gdr=\"{direct}\">{links}</gpu>");
    pci(bus, "0x030200", &gpu)
}

fn nic(bus: &str, number: u32, speed: i32) -> String {
    let net = format!(
        "<nic><net name=\"mlx5_{number}\" dev=\"{number}\" speed=\"{speed}\" port=\"1\" gdr=\"1\"/></nic>"
    );
    pci(bus, "0x020700", &net)
}

fn system(sockets: &[&str]) -> String {
    let sockets: String = (sockets.iter().enumerate())
        .map(|(number, inside)| format!("<cpu numaid=\"{number}\">\n{inside}</cpu>\n"))
        .collect();
    format!("<system version=\"1\">\n{sockets}</system>\n")
}

const NVSWITCHES: &str = "<nvlink target=\"0000:07:00.0\" count=\"10\" tclass=\"0x068000\"/>\
                          <nvlink target=\"0000:08:00.0\" count=\"8\" tclass=\"0x068000\"/>";

/// What a cloud gives to NCCL of its machines: PCI functions alone, behind switches that it made up.
#[test]
fn files_for_nccl_need_no_gpu_and_no_net() {
    let socket = |number: u32| {
        let function = |domain: u32, class: &str| {
            format!(
                "<pci busid=\"{domain:04x}:00:00.0\" class=\"{class}\" link_speed=\"16 GT/s\" link_width=\"16\"/>\n"
            )
        };
        let inside = [
            function(2 * number, "0x030200"),
            function(256 + 2 * number, "0x020700"),
            function(2 * number + 1, "0x030200"),
            function(257 + 2 * number, "0x020700"),
        ];
        format!(
            "<pci busid=\"ffff:ff:{number:02x}.0\" class=\"0x060400\" link_speed=\"16 GT/s\" link_width=\"16\">\n{}</pci>\n",
            inside.concat()
        )
    };
    let sockets: Vec<String> = (1..=4).map(socket).collect();
    let sockets: Vec<&str> = sockets.iter().map(String::as_str).collect();
    let node = parsed(&system(&sockets));
    assert_eq!(nics_of(&node), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(node.accelerators[0].bus, "0002:00:00.0");
    assert_eq!(node.nics[1].name, "0103:00:00.0");
    // 16 GT/s · 16 · 128/130 · 256/280.
    let payload = 16e9 * 16.0 * 128.0 / 130.0 * 256.0 / 280.0;
    let found = node.pcie_rate.unwrap().as_bps() as f64;
    assert!((found / payload - 1.0).abs() < 1e-6, "{found} {payload}");
    assert_eq!(node.pcie_sharing, 2);
    assert_eq!((node.accelerator_rate, node.direct), (None, None));
    assert_eq!(node.port_rate(), None);
    assert_eq!(
        node.notes,
        ["no `gpu`, so nothing is said of NVLink: see `accelerator_rate`"]
    );
}

/// Hopper: 18 links of 20.6 GB/s, NICs behind the switch of their accelerator, a storage NIC behind none.
#[test]
fn dumps_say_everything() {
    let switch =
        |number: u32, devices: &str| pci(&format!("0000:{number}0:00.0"), "0x060400", devices);
    let near = [
        switch(
            1,
            &[
                nic("0000:11:00.0", 3, 400_000),
                gpu("0000:12:00.0", 1, 1, NVSWITCHES),
            ]
            .concat(),
        ),
        switch(
            2,
            &[
                gpu("0000:21:00.0", 0, 1, NVSWITCHES),
                nic("0000:22:00.0", 2, 400_000),
            ]
            .concat(),
        ),
        nic("0000:31:00.0", 9, 100_000),
    ];
    let node = parsed(&system(&[&near.concat()]));
    // By device number, which is not the order of the file.
    let buses: Vec<&str> = node.accelerators.iter().map(|it| it.bus.as_str()).collect();
    assert_eq!(buses, ["0000:21:00.0", "0000:12:00.0"]);
    let names: Vec<&str> = node.nics.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["mlx5_2", "mlx5_3"]);
    assert_eq!(nics_of(&node), [0, 1]);
    assert_eq!(node.port_rate(), Some(Rate::gbps(400)));
    assert_eq!(node.accelerator_rate, Some(Rate::mbps(18 * 20_600 * 8)));
    assert_eq!((node.direct, node.pcie_sharing), (Some(true), 1));
    // Ports of 400 Gb/s behind 230 Gb/s, and the NIC for storage.
    let [left_out, slow, also_slow] = &node.notes[..] else {
        panic!("{:?}", node.notes);
    };
    assert!(
        left_out.contains("the NIC mlx5_9 is nearest to no accelerator"),
        "{left_out}"
    );
    assert!(
        slow.contains("of the NIC mlx5_2, less than its 400Gb/s"),
        "{slow}"
    );
    assert!(also_slow.contains("of the NIC mlx5_3"), "{also_slow}");
}

#[test]
fn two_accelerators_share_the_one_nic_of_their_switch() {
    let text = include_str!("../../../../../scenarios/nodes/shared_nics.xml");
    let node = parsed(text);
    assert_eq!(nics_of(&node), [0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!(node.port_rate(), Some(Rate::gbps(200)));
    // Ampere: 12 links of 20 GB/s.
    assert_eq!(node.accelerator_rate, Some(Rate::gbps(12 * 20 * 8)));
    assert_eq!(node.notes.len(), 1, "{:?}", node.notes);
}

/// Without a common switch NCCL stages, whatever the flags say; and without NVLink the bus is what there is.
#[test]
fn what_has_only_the_socket_in_common_is_staged_over_the_bus() {
    let inside = [
        gpu("0000:11:00.0", 0, 1, ""),
        nic("0000:12:00.0", 0, 100_000),
    ]
    .concat();
    let node = parsed(&system(&[&inside]));
    assert_eq!(node.direct, Some(false));
    assert_eq!(node.accelerator_rate, node.pcie_rate);
    assert!(node.notes[0].starts_with("no NVLink"), "{:?}", node.notes);
    // A flag counts as much.
    let behind = pci(
        "0000:10:00.0",
        "0x060400",
        &[
            gpu("0000:11:00.0", 0, 0, ""),
            nic("0000:12:00.0", 0, 100_000),
        ]
        .concat(),
    );
    assert_eq!(parsed(&system(&[&behind])).direct, Some(false));
}

#[test]
fn what_the_model_cannot_say_is_a_note() {
    let twin = "<nvlink target=\"0000:21:00.0\" count=\"4\" tclass=\"0x030200\"/>";
    let itself = "<nvlink target=\"0000:21:00.0\" count=\"12\" tclass=\"0x030200\"/>\
                  <nvlink target=\"0000:11:00.0\" count=\"2\" tclass=\"0x030200\"/><c2c bw=\"1\" count=\"1\"/>";
    let one = [gpu("0000:11:00.0", 0, 1, twin), nic("0000:12:00.0", 0, -1)].concat();
    let one = pci("0000:10:00.0", "0x060400", &one);
    let other = gpu("0000:21:00.0", 1, 1, itself);
    let unknown = "<pci busid=\"0000:31:00.0\" class=\"0x030000\" link_speed=\"Unknown speed\" link_width=\"255\"/>\n\
                   <fpga/>";
    let node = parsed(&system(&[&one, &[&other, unknown].concat()]));
    assert_eq!(node.port_rate(), None);
    assert_eq!(node.accelerator_rate, Some(Rate::mbps(2 * 20_600 * 8)));
    assert_eq!(node.direct, None);
    let all = node.notes.join("\n");
    for expected in [
        "`c2c`: links between accelerators and processors (C2C) are not part",
        "`fpga`: an element that NCCL does not know",
        "0000:31:00.0 has no `gpu` in it",
        "0000:31:00.0 are is not said",
        "nearest to 0000:21:00.0 are on another socket",
        "lead to their own accelerator",
        "lead from accelerator to accelerator",
        "differ in what their NVLinks carry",
        "1 of 2 accelerators cannot be reached directly",
    ] {
        assert!(all.contains(expected), "{expected} is not in\n{all}");
    }
}

#[test]
fn what_is_wrong_is_said_with_file_line_element_and_attribute() {
    let with = |function: &str| refused(&system(&[&[function, "\n"].concat()]));
    for (text, expected) in [
        (refused("<system"), "topo.xml:1: the text is "),
        (
            refused("<graphs version=\"1\"/>"),
            "topo.xml:1: the outermost element is `graphs`, but it must be `system` (is this a topology file",
        ),
        (
            refused("<system version=\"7\"/>"),
            "topo.xml:1: `version` of `system` is `7`, but it must be `1` or `2`",
        ),
        (
            with("<pci class=\"0x030200\"/>"),
            "topo.xml:3: `busid` of `pci` is not given, but it must be given",
        ),
        (
            with("<pci busid=\"one\" class=\"0x030200\"/>"),
            "topo.xml:3: `busid` of `pci` is `one`, but it must be a PCI address",
        ),
        (
            with("<pci busid=\"0:1:0.0\" class=\"gpu\"/>"),
            "topo.xml:3: `class` of `pci` is `gpu`, but it must be a PCI class",
        ),
        (
            with(
                "<pci busid=\"0:1:0.0\" class=\"0x03\" link_speed=\"12 GT/s\" link_width=\"16\"/>",
            ),
            "topo.xml:3: `link_speed` of `pci` is `12 GT/s`, but it must be a rate of PCIe",
        ),
        (
            with("<pci busid=\"0:1:0.0\" class=\"0x03\" link_speed=\"8 GT/s\" link_width=\"3\"/>"),
            "topo.xml:3: `link_width` of `pci` is `3`, but it must be 1, 2, 4",
        ),
        (
            with("<gpu dev=\"0\"/>"),
            "topo.xml:3: the element `gpu` is inside `cpu`, but it must be inside `pci`",
        ),
        (
            with(&gpu("0:1:0.0", 0, 7, "")),
            "topo.xml:3: `gdr` of `gpu` is `7`, but it must be `0` or `1`",
        ),
        (
            with(&gpu(
                "0:1:0.0",
                0,
                1,
                "<nvlink target=\"0:2:0.0\" count=\"x\" tclass=\"0x068000\"/>",
            )),
            "topo.xml:3: `count` of `nvlink` is `x`, but it must be a whole number",
        ),
        (
            with(&[gpu("0:1:0.0", 0, 1, ""), gpu("0:1:0.0", 1, 1, "")].concat()),
            "topo.xml:4: `busid` of `pci` is `0:1:0.0`, that of line 3, but it must be an address of its own",
        ),
        (
            with(&gpu("0:1:0.0", 0, 1, "")),
            "topo.xml: what is inside `system` is no NIC, but it must be at least one `pci` with a `nic`",
        ),
        (
            with(&nic("0:1:0.0", 0, 100)),
            "topo.xml: what is inside `system` is no accelerator",
        ),
        (
            refused(
                "<system version=\"1\"><cpu numaid=\"0\" host_hash=\"0x1\"/>\n<cpu numaid=\"1\" host_hash=\"0x2\"/></system>",
            ),
            "topo.xml:2: `host_hash` of `cpu` is `0x2`, but it must be that of the first `cpu`",
        ),
    ] {
        assert!(text.starts_with(expected), "{text}\nis not\n{expected}");
    }
}

/// 63.0 GB/s raw and 57.6 GB/s of payload: sixteen lanes of the fifth generation, as everywhere in the model.
#[test]
fn the_fifth_generation_carries_what_staging_assumes() {
    let rate = links::pcie_payload("32.0 GT/s PCIe", 16).unwrap();
    assert!((rate.as_gbps_f64() / 460.8 - 1.0).abs() < 1e-3, "{rate}");
    // Half of the lanes, half of the rate; and encodings with a fifth of overhead.
    let half = links::pcie_payload("32 GT/s", 8).unwrap();
    assert!((half.as_gbps_f64() * 2.0 / rate.as_gbps_f64() - 1.0).abs() < 1e-9);
    let second = links::pcie_payload("5.0 GT/s PCIe", 1).unwrap();
    assert!((second.as_gbps_f64() / (5.0 * 0.8 * 256.0 / 280.0) - 1.0).abs() < 1e-9);
    assert_eq!(links::pcie_payload("32.0", 16), None);
}

/// What AMD's accelerators have, in RCCL's form: nothing is guessed of its rate.
#[test]
fn the_rate_of_xgmi_is_left_open() {
    let link = "<xgmi target=\"0000:13:00.0\" count=\"1\" tclass=\"0x038000\"/>";
    let inside = [
        gpu("0000:11:00.0", 0, 1, link),
        nic("0000:12:00.0", 0, 100_000),
    ];
    let text = system(&[&inside.concat()]).replace("version=\"1\"", "version=\"2\"");
    let node = parsed(&text);
    assert_eq!(node.accelerator_rate, None);
    assert!(
        node.notes[0].starts_with("how fast XGMI is"),
        "{:?}",
        node.notes
    );
}
