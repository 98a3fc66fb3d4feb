//! The numbers of queue pairs: who gets which, and when one comes back.

use softfabric_transport::{
    CreateError, Device, DeviceConfig, LengthsOnly, QueuePairInit, QueuePairNumbers, QueuePairType,
};
use softfabric_units::{Qpn, Rate};

fn device(numbers: QueuePairNumbers) -> (Device<LengthsOnly>, QueuePairInit) {
    let mut config = DeviceConfig::new(Rate::gbps(100));
    config.qp_numbers = numbers;
    let mut device = Device::new(config, LengthsOnly::new());
    let domain = device.alloc_domain();
    let queue = device.create_cq(10).expect("small");
    let service = QueuePairType::ReliableConnection;
    (device, QueuePairInit::new(service, domain, queue))
}

fn numbers(first: u32, last: u32) -> Option<QueuePairNumbers> {
    QueuePairNumbers::new(Qpn::new(first), Qpn::new(last))
}

#[test]
fn without_a_range_they_start_at_two() {
    let (mut device, init) = device(QueuePairNumbers::ALL);
    let made = [(); 3].map(|()| device.create_qp(&init).map(Qpn::as_u32));
    assert_eq!(made, [Ok(2), Ok(3), Ok(4)]);
}

#[test]
fn reserved_numbers_are_in_no_range() {
    for (first, last) in [(0, 5), (1, 5), (5, 4), (5, 0xff_ffff)] {
        assert_eq!(numbers(first, last), None, "{first}..={last}");
    }
    assert_eq!(numbers(2, 0xff_fffe), Some(QueuePairNumbers::ALL));
    assert_eq!(QueuePairNumbers::ALL.count(), 0xff_fffd);
}

#[test]
fn a_freed_number_comes_back_after_all_others() {
    let range = numbers(0x7_0000, 0x7_0003).expect("four numbers");
    let (mut device, init) = device(range);
    let make = |device: &mut Device<LengthsOnly>| device.create_qp(&init).map(Qpn::as_u32);
    let destroy = |device: &mut Device<LengthsOnly>, number| {
        device.destroy_qp(Qpn::new(number)).expect("it is there");
    };
    assert_eq!(make(&mut device), Ok(0x7_0000));
    destroy(&mut device, 0x7_0000);
    for expected in [0x7_0001, 0x7_0002, 0x7_0003, 0x7_0000] {
        assert_eq!(make(&mut device), Ok(expected));
    }
    assert_eq!(make(&mut device), Err(CreateError::NoNumbers(4)));
    destroy(&mut device, 0x7_0002);
    assert_eq!(make(&mut device), Ok(0x7_0002), "the only free one");
}

/// A queue pair may be made with a number of the driver's choice, inside the range or outside.
#[test]
fn numbers_that_are_asked_for() {
    let range = numbers(10, 12).expect("three numbers");
    let (mut device, init) = device(range);
    for number in [11, 500] {
        let number = Some(Qpn::new(number));
        let asked = QueuePairInit { number, ..init };
        assert_eq!(device.create_qp(&asked).ok(), number);
    }
    let made = [(); 3].map(|()| device.create_qp(&init).map(Qpn::as_u32));
    assert_eq!(made, [Ok(10), Ok(12), Err(CreateError::NoNumbers(3))]);
}
