"""What many idle leases cost: workers heartbeat, and a monitor must find nothing (P11)."""
