from tests.fixtures.at_the_page import alice, email, model, page, service, service_env

__all__ = ["alice", "email", "model", "page", "service", "service_env"]
