from tests.fixtures.at_the_page import alice, email, model, page, service, service_env, shared_service, window

__all__ = ["alice", "email", "model", "page", "service", "service_env", "shared_service", "window"]
